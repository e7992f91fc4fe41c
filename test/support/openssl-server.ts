/**
 * `openssl s_server`: an HTTPS server that requires a client certificate of the same authority and, unlike Node.js, sends a TLS alert with
 * the reason of a refusal.
 */
import type { Certificates } from './certificates.ts';
import { freePort } from './loopback.ts';
import { startServerProgram } from './server-program.ts';

/** Responds to a GET with 200 and a page. @param demands further options. Default: a client certificate is required */
export async function startOpensslServer(
  certificates: Pick<Certificates, 'serverFiles' | 'caFile'>,
  demands: readonly string[] = ['-Verify', '1', '-verify_return_error'],
): Promise<{ readonly url: URL } & AsyncDisposable> {
  const port = await freePort();
  const address = `127.0.0.1:${String(port)}`;
  const { certificateFile, keyFile } = certificates.serverFiles;
  const own = ['-cert', certificateFile, '-key', keyFile, '-CAfile', certificates.caFile];
  const args = ['s_server', '-accept', address, ...own, ...demands, '-www', '-quiet'];
  const program = await startServerProgram('openssl', { args, port });
  return { url: new URL(`https://${address}`), [Symbol.asyncDispose]: () => program.stop() };
}
