<?php
// Arguments and output: test/peers/broken-responses/clients.ts.
[, $variant, $base] = $argv;

function read_stream(string $url): array
{
    $stream = @fopen($url, 'r', false, stream_context_create(['http' => ['protocol_version' => '1.1', 'header' => 'Connection: close']]));
    if ($stream === false) return [0, error_get_last()['message']];
    $bytes = 0;
    error_clear_last();
    while (!feof($stream)) {
        $part = @fread($stream, 65536);
        if ($part === false) break;
        $bytes += strlen($part);
    }
    return [$bytes, error_get_last()['message'] ?? ''];
}

function read_curl(string $url): array
{
    $bytes = 0;
    $curl = curl_init($url);
    curl_setopt($curl, CURLOPT_WRITEFUNCTION, function ($_, $part) use (&$bytes) {
        $bytes += strlen($part);
        return strlen($part);
    });
    curl_exec($curl);
    return [$bytes, curl_error($curl)];
}

foreach (array_slice($argv, 3) as $path) {
    [$bytes, $error] = $variant === 'curl' ? read_curl($base . $path) : read_stream($base . $path);
    echo json_encode(['path' => $path, 'bytes' => $bytes, 'error' => $error]), "\n";
}
