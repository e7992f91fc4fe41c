/** The commands as a person meets them: a first run, a wrong configuration, a check. */
import { execFile } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { saveCertificate } from '../support/sandbox-certificate.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';
import { CTRL_C, PROGRAM_COMMAND, openTerminal } from '../support/terminal.ts';
import { startTokenServer } from '../support/token-server.ts';

const FREE_PORTS = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
const sh = promisify(execFile);

describe('sandbox', () => {
  it('prints where everything is and a curl line that works when pasted', async () => {
    await using sidecar = spawnSidecar({ name: 'sandbox', args: ['sandbox'], env: FREE_PORTS });
    const line = await sidecar.waitForLine(/^try curl /);
    for (const name of ['proxy', 'admin', 'token', 'api'])
      await sidecar.waitForLine(new RegExp(`^${name} https?://\\S+$`));

    const { stdout } = await sh('sh', ['-c', line.replace(/^try /, '')]);
    expect(stdout).toMatch(/^HTTP\/1\.1 201 /);
    const body = JSON.parse(stdout.slice(stdout.indexOf('\r\n\r\n'))) as unknown;
    expect(body).toMatchObject({ simulated: true });

    const admin = (await sidecar.waitForLine(/^admin /)).replace('admin ', '');
    expect((await call(`${admin}/readyz`)).status).toBe(200);
    expect((await call(`${admin}/metrics`)).text).toMatch(/bearer_sidecar_requests_total\{[^}]*code="201"[^}]*\} 1\n/);
    expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});

describe('an address that is taken', () => {
  it.each([
    ['SIDECAR_LISTEN', 'listen.address'],
    ['SIDECAR_ADMIN_LISTEN', 'admin.address'],
  ])('is reported in one line with its setting: %s', async (variable, key) => {
    const other = createHttpServer();
    const { host } = new URL(await listenOnLoopback(other));
    const env = { ...baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()), ...FREE_PORTS };
    await using sidecar = spawnSidecar({
      name: `taken-${key}`,
      env: { ...env, [variable]: host },
    });
    expect(await sidecar.exit).toEqual({ code: 1, signal: null });
    const words = `${key} (${variable}): cannot listen on ${host}: it is in use (EADDRINUSE)`;
    expect(sidecar.stderr()).toBe(`bearer-sidecar: ${words}; stop what listens there or choose another address\n`);
    await closeServer(other);
  });
});

describe('on a terminal', () => {
  it('the sandbox prints the same lines, one each, and readable ones for the log', async () => {
    await using terminal = openTerminal({
      name: 'sandbox',
      command: `${PROGRAM_COMMAND} sandbox`,
      env: FREE_PORTS,
      columns: 80,
    });
    for (const name of ['proxy', 'admin', 'token', 'api'])
      await terminal.waitFor(new RegExp(`^${name} https?://\\S+$`, 'm'));
    const line = (await terminal.waitFor(/^try curl .*$/m)).replace('try ', '');
    const { stdout } = await sh('sh', ['-c', line]);
    expect(stdout).toMatch(/^HTTP\/1\.1 201 /);
    await terminal.waitFor(/\d\d:\d\d:\d\d\.\d{3} info {2}POST \/quotes-requests 201 in /);
    terminal.type(CTRL_C);
    // The terminal shows ^C itself; the log goes on in a line of its own.
    await terminal.waitFor(/\^C\n[\d:.]+ info {2}draining/);
    expect(await terminal.exit).toBe(0);
    expect(terminal.text()).not.toContain('{"level"');
  });

  it('run shows a banner without secrets, in colour, and Ctrl-C drains', async () => {
    await using tokens = await startTokenServer();
    const credential = newCredential();
    const env = { ...baseSettings('http://127.0.0.1:1/v1', tokens.url, credential), ...FREE_PORTS };
    await using terminal = openTerminal({ name: 'run', command: PROGRAM_COMMAND, env });
    await terminal.waitFor(/bearer-sidecar \d+\.\d+\.\d+\n\n/);
    for (const row of [
      / proxy +http:\S+/,
      / upstream +http:\S+\/v1 /,
      / token +http:\S+ .*secret \*{8}\n/,
      / status +http:\S+/,
    ])
      await terminal.waitFor(row);
    await terminal.waitFor(/token obtained/);
    terminal.type(CTRL_C);
    expect(await terminal.exit).toBe(0);
    expect(terminal.screen()).toContain('\u001b[1mbearer-sidecar');
    for (const secret of [credential.id, credential.secret]) expect(terminal.screen()).not.toContain(secret);
  });

  it.each([
    ['NO_COLOR', { NO_COLOR: '1' }, false],
    ['TERM=dumb', { TERM: 'dumb' }, false],
    ['FORCE_COLOR=0', { FORCE_COLOR: '0' }, false],
    ['nothing', {}, true],
  ])('%s decides whether --help is in colour', async (name, env, isColoured) => {
    const options = { name: `colour-${name}`, command: `${PROGRAM_COMMAND} --help`, env, columns: 80 };
    await using terminal = openTerminal(options);
    expect(await terminal.exit).toBe(0);
    expect(terminal.screen().includes('\u001b[')).toBe(isColoured);
    expect(terminal.text().split('\n').length).toBeLessThanOrEqual(24);
  });

  it('prints how to begin without arguments', async () => {
    await using terminal = openTerminal({ name: 'first-steps', command: PROGRAM_COMMAND });
    expect(await terminal.exit).toBe(2);
    const lines = terminal.text().trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    for (const words of ['bearer-sidecar sandbox', 'bearer-sidecar init', 'SIDECAR_BASE_URL, SIDECAR_AUTH_URL'])
      expect(terminal.text()).toContain(words);
  });

  it('the log is JSON when it is asked for, and there is no banner', async () => {
    const env = { ...baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()), ...FREE_PORTS };
    await using terminal = openTerminal({
      name: 'json',
      command: PROGRAM_COMMAND,
      env: { ...env, SIDECAR_LOG_FORMAT: 'json' },
    });
    await terminal.waitFor(/^\{"level":"info",.*"msg":"listening"\}\n/);
    terminal.type(CTRL_C);
    expect(await terminal.exit).toBe(0);
  });

  it('check has symbols and a line for what to do', async () => {
    const env = baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential());
    await using terminal = openTerminal({ name: 'check', command: `${PROGRAM_COMMAND} check`, env });
    expect(await terminal.exit).toBe(1);
    expect(terminal.text()).toMatch(/^✔ configuration settings +valid$/m);
    expect(terminal.text()).toMatch(/^✘ connect +token endpoint .*refused.*\n(.*\n)?.* → nothing listens there/m);
    expect(
      terminal
        .text()
        .split('\n')
        .filter((line) => line.length > 100),
    ).toEqual([]);
  });
});

describe('in a pipe', () => {
  it('FORCE_COLOR colours what is for people; SIDECAR_LOG_FORMAT=pretty alone does not', async () => {
    await using help = spawnSidecar({ name: 'forced-colour', args: ['--help'], env: { FORCE_COLOR: '1' } });
    expect(await help.exit).toEqual({ code: 0, signal: null });
    expect(help.stdout()).toContain('\u001b[1m');

    const env = { ...baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()), ...FREE_PORTS };
    await using sidecar = spawnSidecar({ name: 'pretty', env: { ...env, SIDECAR_LOG_FORMAT: 'pretty' } });
    await sidecar.waitForLine(/^\d\d:\d\d:\d\d\.\d{3} info {2}listening server=proxy url=http:\S+$/);
    expect(sidecar.stdout()).not.toMatch(/\u001b|bearer-sidecar/);
  });
});

describe('a wrong configuration', () => {
  it('prints five lines for five wrong settings and exits with 2', async () => {
    await using sidecar = spawnSidecar({
      name: 'wrong-settings',
      env: {
        ...baseSettings('https://api.partner.example', 'ftp://auth.partner.example', newCredential()),
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
    [['completion', 'bash'], 2],
    [['config', 'throtle'], 2],
    [['help', 'check'], 0],
    [['check', '--help'], 0],
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
    const token = new URL((await sandbox.waitForLine(/^token /)).replace('token ', ''));
    const env = {
      ...client,
      SIDECAR_AUTH_URL: token.origin,
      SIDECAR_CA_FILE: saveCertificate(token),
      SIDECAR_BASE_URL: (await sandbox.waitForLine(/^api /)).replace('api ', ''),
      SIDECAR_SCOPE: 'urn:example.partners.sales.individual.travel.policies.write',
    };
    await using check = spawnSidecar({ name: 'check-sandbox', args: ['check'], env });
    expect(await check.exit).toEqual({ code: 0, signal: null });
    const lines = check.stdout().split('\n');
    for (const line of [
      /^ok +configuration settings +valid$/,
      /^ok +token +token endpoint +\S+ ms +obtained from https:\S+$/,
      /^ok +scope +token endpoint +granted: urn:example\S+$/,
      /^ok +lifetime +token endpoint +valid for 3600 s /,
      /^ok +connect +upstream +\S+ ms +127\.0\.0\.1:\d+ \(connected\)$/,
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
    const env = baseSettings(url, tokens.url, newCredential());

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
