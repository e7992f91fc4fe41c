/** A start on ports that another process listens on. */
import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';

async function takePort(): Promise<string> {
  const server = createServer();
  const { port } = new URL(await listenOnLoopback(server));
  onTestFinished(() => closeServer(server));
  return port;
}

const lineFor = (setting: string, port: string): string =>
  `bearer-sidecar: ${setting}: cannot listen on 127.0.0.1:${port}: it is in use (EADDRINUSE); stop what listens there or choose another address\n`;

describe('the error names what is taken:', () => {
  it.each([
    ['both ports', true, true],
    ['the proxy port', true, false],
    ['the admin port', false, true],
  ])('%s', async (_, isProxyTaken, isAdminTaken) => {
    const [proxy, admin] = [isProxyTaken ? await takePort() : '0', isAdminTaken ? await takePort() : '0'];
    const tokens = await startRecordingUpstream((_request, response) => void response.writeHead(500).end());
    onTestFinished(() => tokens[Symbol.asyncDispose]());
    const env = {
      ...baseSettings('http://127.0.0.1:1', tokens.url, newCredential()),
      SIDECAR_LISTEN: `127.0.0.1:${proxy}`,
      SIDECAR_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    };
    const sidecar = spawnSidecar({ name: `taken-${proxy}-${admin}`, env });
    expect(await sidecar.exit).toEqual({ code: 1, signal: null });
    expect(sidecar.stderr()).toBe(
      (isProxyTaken ? lineFor('listen.address (SIDECAR_LISTEN)', proxy) : '') +
        (isAdminTaken ? lineFor('admin.address (SIDECAR_ADMIN_LISTEN)', admin) : ''),
    );
    if (isAdminTaken) expect(tokens.requests).toEqual([]);
  });
});
