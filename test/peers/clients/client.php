<?php
// Calls of PHP's stream wrapper (fopen), its curl extension and SoapClient. Arguments and output:
// test/peers/client-stacks/client-program.ts.

const KEPT_CALLS = 5;
[, $stack, $base, $folder] = $argv;
$cells = array_slice($argv, 4);
// fopen and SoapClient read no proxy from the environment: the application sets it.
$proxy = getenv('http_proxy') ? parse_url(getenv('http_proxy')) : null;
ini_set('memory_limit', '-1');
ini_set('default_socket_timeout', '60');
ini_set('soap.wsdl_cache_enabled', '0');
// What a function warns of is an error of its cell.
set_error_handler(function ($level, $text) { throw new ErrorException($text); });

function report(array $line): void
{
    echo json_encode($line, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
    flush();
}

function report_event(string $line): void
{
    if (str_starts_with($line, 'data: ')) report(['cell' => 'sse', 'event' => trim(substr($line, 6))]);
}

class Digest
{
    public int $bytes = 0;
    private HashContext $hash;

    public function __construct()
    {
        $this->hash = hash_init('sha256');
    }

    public function add(string $chunk): int
    {
        $this->bytes += strlen($chunk);
        hash_update($this->hash, $chunk);
        return strlen($chunk);
    }

    public function line(): array
    {
        return ['bytes' => $this->bytes, 'sha256' => hash_final($this->hash)];
    }
}

function is_upload(string $cell): bool
{
    return $cell === 'post' || $cell === 'up';
}

function run_fopen(string $cell): array
{
    global $base, $folder, $proxy;
    $http = is_upload($cell)
        ? ['method' => 'POST', 'header' => 'Content-Type: application/json', 'content' => file_get_contents("$folder/$cell")]
        : ['method' => 'GET'];
    // PHP holds back the events of a chunked response, also without a sidecar.
    if ($cell === 'sse') $http += ['protocol_version' => '1.0'];
    if ($proxy) $http += ['proxy' => "tcp://{$proxy['host']}:{$proxy['port']}", 'request_fulluri' => true];
    $digest = new Digest();
    for ($call = 0; $call < ($cell === 'keep-alive' ? KEPT_CALLS : 1); $call++) {
        $stream = fopen("$base/$cell", 'r', false, stream_context_create(['http' => $http]));
        while (!feof($stream)) {
            if ($cell === 'sse') report_event((string) fgets($stream));
            else $digest->add((string) fread($stream, 65536));
        }
        fclose($stream);
    }
    return $digest->line();
}

function run_curl(CurlHandle $curl, string $cell): array
{
    global $base, $folder, $stack;
    $digest = new Digest();
    curl_reset($curl);
    curl_setopt_array($curl, [
        CURLOPT_URL => "$base/$cell",
        CURLOPT_FAILONERROR => true,
        CURLOPT_WRITEFUNCTION => function ($curl, $chunk) use ($cell, $digest) {
            if ($cell !== 'sse') return $digest->add($chunk);
            foreach (explode("\n", $chunk) as $line) report_event($line);
            return strlen($chunk);
        },
    ]);
    if ($stack === 'curl-http2') curl_setopt($curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_0);
    if (is_upload($cell)) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, file_get_contents("$folder/$cell"));
        curl_setopt($curl, CURLOPT_HTTPHEADER, ['Content-Type: application/json']);
    }
    for ($call = 0; $call < ($cell === 'keep-alive' ? KEPT_CALLS : 1); $call++) {
        if (!curl_exec($curl)) throw new Exception(curl_error($curl));
    }
    return $digest->line();
}

/** The service's address is set by the application (`location`), as for a WSDL that names the partner's own. */
function run_soap(string $cell): array
{
    global $base, $folder, $proxy;
    $options = ['location' => "$base/$cell", 'trace' => true];
    if ($proxy) $options += ['proxy_host' => $proxy['host'], 'proxy_port' => $proxy['port']];
    $client = new SoapClient($cell === 'get' ? "$base/get" : "$base/wsdl", $options);
    if ($cell === 'get') return ['operations' => $client->__getFunctions()];
    $text = is_upload($cell) ? file_get_contents("$folder/$cell") : 'x';
    $sent = new Digest();
    $received = new Digest();
    for ($call = 0; $call < ($cell === 'keep-alive' ? KEPT_CALLS : 1); $call++) {
        $client->__soapCall('quote', ['text' => $text]);
        $sent->add($client->__getLastRequest());
        $received->add($client->__getLastResponse());
    }
    return $received->line() + ['sentSha256' => $sent->line()['sha256']];
}

$curl = curl_init();
foreach ($cells as $cell) {
    try {
        $line = match ($stack) {
            'fopen' => run_fopen($cell),
            'curl', 'curl-http2' => run_curl($curl, $cell),
            'soap' => run_soap($cell),
        };
        report(['cell' => $cell] + $line);
    } catch (Throwable $error) {
        report(['cell' => $cell, 'error' => $error->getMessage()]);
    }
}
