/** The admin port on a socket file, whose peers are on this machine although they have no address. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startInProcess } from './in-process.ts';

it('shows everything on a socket file, as on loopback', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'admin-socket-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const socketPath = join(folder, 'admin.sock');
  await startInProcess({ env: { SIDECAR_ADMIN_LISTEN: `unix:${socketPath}` } });
  const sent = request({ socketPath, path: '/status', headers: { host: 'localhost' } });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(200);
});
