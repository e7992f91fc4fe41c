import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.apache.commons.httpclient.methods.GetMethod;

/** Arguments and output: test/peers/broken-responses/clients.ts. */
final class Broken {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final org.apache.commons.httpclient.HttpClient COMMONS = new org.apache.commons.httpclient.HttpClient();

    public static void main(String[] args) {
        for (int at = 2; at < args.length; at++) {
            long bytes = 0;
            String error = "";
            try (InputStream body = open(args[0], args[1] + args[at])) {
                byte[] chunk = new byte[65536];
                for (int length = body.read(chunk); length >= 0; length = body.read(chunk)) bytes += length;
            } catch (Exception thrown) {
                error = String.valueOf(thrown).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
            }
            System.out.println("{\"path\":\"" + args[at] + "\",\"bytes\":" + bytes + ",\"error\":\"" + error + "\"}");
        }
    }

    private static InputStream open(String variant, String url) throws Exception {
        if (variant.equals("http-client")) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
            return CLIENT.send(request, HttpResponse.BodyHandlers.ofInputStream()).body();
        }
        if (variant.equals("commons")) {
            GetMethod get = new GetMethod(url);
            COMMONS.executeMethod(get);
            return get.getResponseBodyAsStream();
        }
        return ((HttpURLConnection) URI.create(url).toURL().openConnection()).getInputStream();
    }
}
