/** Sends raw bytes, for requests that no HTTP client would send. */
import { connect } from 'node:tls';
import { IDENTITY } from './https-client.ts';

/** Sends bytes and resolves with all received bytes when the connection has ended. */
export async function sendRaw(url: URL, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const { port, hostname: host } = url;
    const socket = connect({ port: Number(port), host, ca: IDENTITY.cert }, () => socket.write(text));
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    // A cut connection ends with ECONNRESET: for these tests that is an end like any other.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      resolve(received);
    });
  });
}
