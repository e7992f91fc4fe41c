/** The commands as a person meets them: a first run, a wrong configuration, a check. */
import { execFile } from 'node:child_process';
import { createServer } from 'node:https';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { settings, spawnSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const FREE_PORTS = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
const sh = promisify(execFile);

describe('sandbox', () => {
  it('prints where everything is and a curl line that works when pasted', async () => {
    await using sidecar = spawnSidecar({ name: 'sandbox', args: ['sandbox'], env: FREE_PORTS });
    const line = await sidecar.line(/^try curl /);
    for (const name of ['proxy', 'admin', 'token', 'api']) await sidecar.line(new RegExp(`^${name} https?://\\S+$`));

    const { stdout } = await sh('sh', ['-c', line.replace(/^try /, '')]);
    expect(stdout).toMatch(/^HTTP\/1\.1 201 /);
    const body = JSON.parse(stdout.slice(stdout.indexOf('\r\n\r\n'))) as unknown;
    expect(body).toMatchObject({ simulated: true });

    const admin = (await sidecar.line(/^admin /)).replace('admin ', '');
    expect((await call(`${admin}/readyz`)).status).toBe(200);
    expect((await call(`${admin}/metrics`)).text).toMatch(/bearer_sidecar_requests_total\{[^}]*code="201"[^}]*\} 1\n/);
    expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});

describe('a wrong configuration', () => {
  it('with five wrong settings prints five lines and exits with 2', async () => {
    await using sidecar = spawnSidecar({
      name: 'wrong-settings',
      env: {
        ...settings('https://api.partner.example', 'ftp://auth.partner.example', newCredential()),
        SIDECAR_RATE: 'fast',
        SIDECAR_WEBSOCKET: 'yes',
        SIDECAR_DEADLINE_MS: '60s',
        SIDECAR_LISTEN: 'localhost',
      },
    });
    expect(await sidecar.exit).toEqual({ code: 2, signal: null });
    const lines = sidecar.stderr().trim().split('\n');
    expect(lines).toHaveLength(5);
    for (const variable of ['AUTH_URL', 'RATE', 'WEBSOCKET', 'DEADLINE_MS', 'LISTEN'])
      expect(lines.filter((line) => line.includes(`(SIDECAR_${variable})`))).toHaveLength(1);
    expect(sidecar.stderr()).not.toMatch(/^\s+at /m);
  });

  it.each([
    [['--no-such-option'], 2],
    [['no-such-command'], 2],
    [['--help'], 0],
    [['--version'], 0],
  ])('%j exits with %i', async (args, code) => {
    await using sidecar = spawnSidecar({ name: 'usage', args });
    expect(await sidecar.exit).toEqual({ code, signal: null });
  });
});

describe('check', () => {
  it('against the sandbox reports a token and an upstream, and no secret', async () => {
    const { id, secret } = newCredential();
    const client = { SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret };
    await using sandbox = spawnSidecar({
      name: 'sandbox-to-check',
      args: ['sandbox'],
      env: { ...FREE_PORTS, ...client },
    });
    const token = new URL((await sandbox.line(/^token /)).replace('token ', ''));
    const env = {
      ...client,
      SIDECAR_AUTH_URL: token.origin,
      SIDECAR_BASE_URL: (await sandbox.line(/^api /)).replace('api ', ''),
      SIDECAR_SCOPE: 'urn:example.partners.sales.individual.travel.policies.write',
    };
    await using check = spawnSidecar({ name: 'check-sandbox', args: ['check'], env });
    expect(await check.exit).toEqual({ code: 0, signal: null });
    const lines = check.stdout().split('\n');
    for (const line of [
      /^ok +configuration settings +valid$/,
      /^ok +token +token endpoint +\S+ ms +obtained from http:\S+$/,
      /^ok +scope +token endpoint +granted: urn:example\S+$/,
      /^ok +lifetime +token endpoint +valid for 3600 s /,
      /^ok +tcp +upstream +\S+ ms +127\.0\.0\.1:\d+ in \S+ ms$/,
      /^skip +tls +upstream +plain, as configured: no TLS$/,
    ])
      expect(lines).toContainEqual(expect.stringMatching(line));
  });

  it('fetches a token, opens TLS to the upstream and says so', async () => {
    using certificates = makeCertificates();
    await using cleanup = new AsyncDisposableStack();
    let upstreamRequests = 0;
    const upstream = createServer({ key: certificates.key, cert: certificates.cert }, (_request, response) => {
      upstreamRequests++;
      response.end('the upstream is not called');
    });
    const url = (await listenOnLoopback(upstream)).replace('http:', 'https:');
    cleanup.defer(() => closeServer(upstream));
    await using tokens = await startTokenServer();
    const env = settings(url, tokens.url, newCredential());

    await using good = spawnSidecar({
      name: 'check',
      args: ['check'],
      env: { ...env, SIDECAR_CA_FILE: certificates.caFile },
    });
    expect(await good.exit).toEqual({ code: 0, signal: null });
    expect(good.stdout()).toMatch(/^ok +token /m);
    expect(good.stdout()).toMatch(/^(ok|warn) +tls +upstream .*TLSv1\.3/m);
    expect(upstreamRequests).toBe(0);
    expect(tokens.requests).toHaveLength(1);

    await using untrusted = spawnSidecar({ name: 'check-untrusted', args: ['check'], env });
    expect(await untrusted.exit).toEqual({ code: 1, signal: null });
    expect(untrusted.stdout()).toMatch(/^FAIL +tls +upstream .*unknown authority.*SIDECAR_CA_FILE/m);
  });
});
