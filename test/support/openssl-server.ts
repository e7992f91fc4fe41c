/**
 * `openssl s_server`: an HTTPS server that demands a certificate of the same authority and, unlike Node's, says by a TLS alert why
 * it does not go on.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Certificates } from './certificates.ts';
import { freePort } from './loopback.ts';
import { openSocket } from './raw-client.ts';

/** Answers a GET with 200 and a page. */
export async function startOpensslServer(certificates: Certificates): Promise<{ readonly url: URL } & AsyncDisposable> {
  const address = `127.0.0.1:${String(await freePort())}`;
  const { certificateFile, keyFile } = certificates.serverFiles;
  const own = ['-cert', certificateFile, '-key', keyFile, '-CAfile', certificates.caFile];
  const demands = ['-Verify', '1', '-verify_return_error', '-www', '-quiet'];
  const child = spawn('openssl', ['s_server', '-accept', address, ...own, ...demands], { stdio: 'ignore' });
  const ended = once(child, 'close');
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  await waitUntilAccepting(`http://${address}`);
  return {
    url: new URL(`https://${address}`),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
      process.off('exit', killAtExit);
    },
  };
}

async function waitUntilAccepting(url: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      (await openSocket(url)).destroy();
      return;
    } catch (error) {
      if (attempt === 600) throw error;
      await sleep(50);
    }
  }
}
