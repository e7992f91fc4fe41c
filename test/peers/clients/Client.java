import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.CookieHandler;
import java.net.CookieManager;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** Calls of java.net.http.HttpClient and HttpURLConnection. Arguments and output: test/peers/client-stacks/client-program.ts. */
final class Client {
    private static String stack;
    private static String base;
    private static Path folder;
    private static HttpClient client;

    public static void main(String[] args) {
        stack = args[0];
        base = args[1];
        folder = Path.of(args[2]);
        // The system properties http.proxyHost and http.proxyPort are read by default, as HttpURLConnection does.
        HttpClient.Builder builder = HttpClient.newBuilder().cookieHandler(new CookieManager());
        // HttpURLConnection has one for the whole process.
        CookieHandler.setDefault(new CookieManager());
        client = (stack.equals("http1") ? builder.version(HttpClient.Version.HTTP_1_1) : builder).build();
        for (String cell : Arrays.asList(args).subList(3, args.length)) {
            try {
                report("\"cell\":\"" + cell + "\"," + run(cell));
            } catch (Exception error) {
                String text = String.valueOf(error).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
                report("\"cell\":\"" + cell + "\",\"error\":\"" + text + "\"");
            }
        }
    }

    private static void report(String members) {
        System.out.println("{" + members + "}");
        System.out.flush();
    }

    private static String run(String cell) throws Exception {
        MessageDigest hash = MessageDigest.getInstance("SHA-256");
        List<String> paths = switch (cell) {
            case "keep-alive" -> List.of(cell, cell, cell, cell, cell);
            case "cookies" -> List.of("a/login", "b/login", "a/account", "b/account");
            default -> List.of(cell);
        };
        long bytes = 0;
        for (String path : paths) {
            try (InputStream body = stack.equals("url-connection") ? connect(path) : send(path)) {
                bytes += cell.equals("sse") ? readEvents(body) : read(body, hash);
            }
        }
        return "\"bytes\":" + bytes + ",\"sha256\":\"" + HexFormat.of().formatHex(hash.digest()) + "\"";
    }

    private static boolean isUpload(String path) {
        return path.equals("post") || path.equals("up");
    }

    private static InputStream send(String path) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + "/" + path)).timeout(Duration.ofSeconds(60));
        if (isUpload(path)) {
            request.header("Content-Type", "application/json");
            request.POST(path.equals("post")
                ? HttpRequest.BodyPublishers.ofByteArray(Files.readAllBytes(folder.resolve(path)))
                : HttpRequest.BodyPublishers.ofFile(folder.resolve(path)));
        }
        if (stack.equals("expect")) request.expectContinue(true);
        HttpResponse<InputStream> response = client.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
        if (response.statusCode() != 200) throw new IOException("status " + response.statusCode());
        return response.body();
    }

    private static InputStream connect(String path) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create(base + "/" + path).toURL().openConnection();
        connection.setReadTimeout(60_000);
        if (isUpload(path)) {
            connection.setRequestMethod("POST");
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setDoOutput(true);
            // Otherwise it holds the whole body in memory.
            if (path.equals("up")) connection.setFixedLengthStreamingMode(Files.size(folder.resolve(path)));
            try (var output = connection.getOutputStream()) {
                Files.copy(folder.resolve(path), output);
            }
        }
        return connection.getInputStream();
    }

    private static long read(InputStream body, MessageDigest hash) throws IOException {
        byte[] chunk = new byte[65536];
        long bytes = 0;
        for (int length = body.read(chunk); length >= 0; length = body.read(chunk)) {
            hash.update(chunk, 0, length);
            bytes += length;
        }
        return bytes;
    }

    private static long readEvents(InputStream body) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(body));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            if (line.startsWith("data: ")) report("\"cell\":\"sse\",\"event\":\"" + line.substring(6) + "\"");
        return 0;
    }
}
