/** Sends raw bytes, for requests that no HTTP client would send. */
import { connect } from 'node:net';

/** Sends bytes and resolves with all received bytes when the connection has ended. */
export async function sendRaw(url: URL, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(Number(url.port), url.hostname, () => socket.write(text));
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    // A cut connection ends with ECONNRESET: for these tests that is an end like any other.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      resolve(received);
    });
  });
}
