# Arguments and output: test/peers/broken-responses/clients.ts.
require 'json'
require 'net/http'

_variant, base, *paths = ARGV
paths.each do |path|
  bytes = 0
  error = ''
  begin
    uri = URI(base + path)
    # Without it, Net::HTTP sends a GET again.
    http = Net::HTTP.new(uri.host, uri.port)
    http.max_retries = 0
    http.start { http.request_get(uri.path) { |response| response.read_body { |part| bytes += part.bytesize } } }
  rescue StandardError => thrown
    error = thrown.inspect
  end
  puts JSON.generate({ path: path, bytes: bytes, error: error })
end
