# Calls of Net::HTTP. Arguments and output: test/peers/client-stacks/client-program.ts.
require 'digest'
require 'json'
require 'net/http'

$stdout.sync = true
_stack, base, FOLDER, *cells = ARGV
BASE = URI(base)

def report(line)
  puts JSON.generate(line)
end

def request_for(cell)
  path = "#{BASE.path}/#{cell}"
  return Net::HTTP::Get.new(path) unless %w[post up].include?(cell)

  request = Net::HTTP::Post.new(path, 'Content-Type' => 'application/json')
  file = "#{FOLDER}/#{cell}"
  if cell == 'post'
    request.body = File.binread(file)
  else
    request.body_stream = File.open(file, 'rb')
    request['Content-Length'] = File.size(file).to_s
  end
  request
end

# Net::HTTP reads http_proxy by default.
def run_cell(cell)
  bytes = 0
  hash = Digest::SHA256.new
  Net::HTTP.start(BASE.host, BASE.port) do |http|
    (cell == 'keep-alive' ? 5 : 1).times do
      http.request(request_for(cell)) do |response|
        raise "status #{response.code}" unless response.is_a?(Net::HTTPSuccess)

        response.read_body do |chunk|
          chunk.scan(/^data: (.*)$/) { |(event)| report(cell: cell, event: event) } if cell == 'sse'
          bytes += chunk.bytesize
          hash << chunk
        end
      end
    end
  end
  report(cell: cell, bytes: bytes, sha256: hash.hexdigest)
end

cells.each do |cell|
  run_cell(cell)
rescue StandardError => e
  report(cell: cell, error: "#{e.class}: #{e.message}")
end
