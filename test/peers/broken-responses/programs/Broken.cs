using System;
using System.Net;

/** Arguments and output: test/peers/broken-responses/clients.ts. */
static class Broken
{
    static void Main(string[] args)
    {
        for (int at = 2; at < args.Length; at++)
        {
            long bytes = 0;
            string error = "";
            try
            {
                using (WebResponse response = WebRequest.Create(args[1] + args[at]).GetResponse())
                {
                    var body = response.GetResponseStream();
                    var chunk = new byte[65536];
                    for (int length = body.Read(chunk, 0, chunk.Length); length > 0; length = body.Read(chunk, 0, chunk.Length))
                        bytes += length;
                }
            }
            catch (Exception thrown)
            {
                error = thrown.Message.Replace('"', ' ').Replace('\\', ' ').Replace('\n', ' ');
            }
            Console.WriteLine("{\"path\":\"" + args[at] + "\",\"bytes\":" + bytes + ",\"error\":\"" + error + "\"}");
        }
    }
}
