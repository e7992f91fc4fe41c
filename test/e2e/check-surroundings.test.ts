/**
 * `check` beyond the two servers: files, the egress proxy, Redis, several routes, one call on demand, and its forms of output. Each
 * output is printed.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scratchDirectory } from '../config/base-env.ts';
import { makeCertificates } from '../support/certificates.ts';
import { runCheck } from '../support/check-run.ts';
import { closeServer, freePort } from '../support/loopback.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { startRedis } from '../support/redis.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings } from '../support/sidecar-process.ts';
import type { Environment } from '../support/sidecar-process.ts';
import { startTinyproxy } from '../support/tinyproxy.ts';
import { startTokenServer } from '../support/token-server.ts';
import type { TokenServer } from '../support/token-server.ts';

const running = new AsyncDisposableStack();
let tokens: TokenServer;
let upstream: RecordingUpstream;

beforeAll(async () => {
  tokens = running.use(await startTokenServer());
  upstream = running.use(await startRecordingUpstream());
});
afterAll(() => running.disposeAsync());

function environment(changes: Environment = {}): Environment {
  return { ...baseSettings(upstream.url, tokens.url, newCredential()), ...changes };
}

describe('files', () => {
  function secretFile(contents: string, mode: number): Environment {
    const path = join(scratchDirectory(), 'client-secret');
    writeFileSync(path, contents);
    chmodSync(path, mode);
    return { SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path };
  }

  it('accepts a file with a line end, and reports it', async () => {
    const { secret } = newCredential();
    const run = await runCheck('a secret with a line end', environment(secretFile(`${secret}\n`, 0o600)));
    expect(run.lines('ok')).toContainEqual(
      expect.stringMatching(/^file +auth\.clientSecretFile .*mode 0600, the trailing line end is dropped$/),
    );
    expect(run.lines('warn')).toEqual([]);
  });

  it('warns of a blank or quotes at the ends of a secret', async () => {
    const { secret } = newCredential();
    const blank = await runCheck('a secret with a blank', environment(secretFile(`${secret} \n`, 0o600)));
    expect(blank.lines('warn')).toEqual([expect.stringMatching(/ends with a blank.* -> write it again/)]);
    const quoted = await runCheck('a secret in quotes', environment(secretFile(`"${secret}"\n`, 0o600)));
    expect(quoted.lines('warn')).toEqual([expect.stringMatching(/is in quotes.* -> write it again/)]);
  });

  it.each([
    ['empty', ''],
    ['missing', undefined],
  ])('that are %s are a wrong configuration', async (name, contents) => {
    const given = secretFile(contents ?? 'x', 0o600);
    const path = contents === undefined ? '/nowhere/client-secret' : given.SIDECAR_CLIENT_SECRET_FILE;
    const run = await runCheck(
      `a secret file that is ${name}`,
      environment({ ...given, SIDECAR_CLIENT_SECRET_FILE: path! }),
    );
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toMatch(/auth\.clientSecretFile \(SIDECAR_CLIENT_SECRET_FILE\): /);
  });

  it('fails for an expired client certificate', async () => {
    using certificates = makeCertificates({ days: -1 });
    const { certificateFile, keyFile } = certificates.serverFiles;
    const files = { SIDECAR_AUTH_TLS_CERTIFICATE_FILE: certificateFile, SIDECAR_AUTH_TLS_KEY_FILE: keyFile };
    const run = await runCheck('a client certificate that has run out', environment(files));
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(/^file +auth\.tlsCertificateFile .*certificate expired .* -> renew the certificate/),
    ]);
  });
});

describe('the egress proxy', () => {
  async function secureTokens(): Promise<Environment> {
    const certificates = running.use(makeCertificates({ names: 'IP:0.0.0.0', days: 60 }));
    const server = createServer({ key: certificates.key, cert: certificates.cert }, (_, response) => {
      const token = randomBytes(18).toString('base64url');
      registerSecret('an access token', token);
      response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600 }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    running.defer(() => closeServer(server));
    // An address that leads here and does not count as loopback, which is never proxied.
    const url = `https://0.0.0.0:${String((server.address() as AddressInfo).port)}`;
    return { SIDECAR_AUTH_URL: url, SIDECAR_CA_FILE: certificates.caFile };
  }

  it('refuses the password', async () => {
    await using proxy = await startTinyproxy({ user: { name: 'legacy', password: 'the-right-password' } });
    const changes = { ...(await secureTokens()), HTTPS_PROXY: `http://legacy:wrong-password@${proxy.host}` };
    const run = await runCheck('a proxy that refuses', environment(changes));
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(/^connect +token endpoint .*does not accept the credentials .* -> /),
    ]);
    expect(run.stdout).not.toMatch(/wrong-password|right-password/);
  });

  it('is not there', async () => {
    const proxy = `127.0.0.1:${String(await freePort())}`;
    const run = await runCheck(
      'a proxy that is away',
      environment({ ...(await secureTokens()), HTTPS_PROXY: `http://${proxy}` }),
    );
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(/^connect +token endpoint .*the egress proxy .*ECONNREFUSED.* -> .*SIDECAR_EGRESS_PROXY/),
    ]);
    expect(run.lines('skip')).toContainEqual(expect.stringMatching(/^token +token endpoint .*was not reached$/));
  });

  it('lets through', async () => {
    await using proxy = await startTinyproxy();
    const run = await runCheck(
      'a proxy',
      environment({ ...(await secureTokens()), HTTPS_PROXY: `http://${proxy.host}` }),
    );
    expect(run.code).toBe(0);
    expect(run.lines('ok')).toContainEqual(
      expect.stringMatching(/^connect +token endpoint .*through the egress proxy/),
    );
    expect(run.lines('ok')).toContainEqual(expect.stringMatching(/^token +token endpoint .*obtained from https:/));
  });
});

describe('Redis', () => {
  it('is not there', async () => {
    const run = await runCheck(
      'Redis away',
      environment({ SIDECAR_REDIS_URL: `redis://127.0.0.1:${await freePort()}` }),
    );
    expect(run.lines('FAIL')).toEqual([expect.stringMatching(/^fleet +Redis .*ECONNREFUSED.* -> .*SIDECAR_REDIS_URL/)]);
    expect(run.code).toBe(1);
  });

  it('refuses the password', async () => {
    const redis = await startRedis({ args: ['--requirepass', 'the-right-password'] });
    const url = `redis://:another-password@127.0.0.1:${redis.port}`;
    const run = await runCheck('Redis with another password', environment({ SIDECAR_REDIS_URL: url }));
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(/^fleet +Redis .*refused the user or the password.* -> /),
    ]);
    expect(run.stdout).not.toMatch(/-password/);
  });
});

describe('--probe', () => {
  it('makes one call, and none without the option', async () => {
    const before = upstream.requests.length;
    expect((await runCheck('no probe', environment())).code).toBe(0);
    expect(upstream.requests).toHaveLength(before);
    const run = await runCheck('a probe', environment(), ['--probe', '/policies?limit=1']);
    expect(run.code).toBe(0);
    expect(run.lines('ok')).toContainEqual(
      expect.stringMatching(/^probe +upstream .*responded with 200, no rate limit stated$/),
    );
    expect(run.lines('ok')).toContainEqual(expect.stringMatching(/^clock +upstream +its clock agrees with ours$/));
    expect(upstream.requests.slice(before)).toMatchObject([
      {
        method: 'GET',
        path: '/policies?limit=1',
        headers: { authorization: `Bearer ${tokens.issued.at(-1)?.value ?? ''}` },
      },
    ]);
  });

  it('reads the limit from the responses of nginx', async () => {
    await using nginx = await startNginx({
      rate: '1r/m',
      refusal: { status: 429, retryAfter: '60' },
      upstream: upstream.url,
    });
    const env = environment({ SIDECAR_BASE_URL: nginx.url });
    expect((await runCheck('a probe below the limit', env, ['--probe', '/'])).code).toBe(0);
    const run = await runCheck('a probe past the limit', env, ['--probe', '/']);
    expect(run.lines('warn')).toEqual([expect.stringMatching(/^probe .*429, limits stated: retry-after: 60 -> /)]);
  });

  it('does not print a token that the response repeats in its header fields', async () => {
    await using parrot = await startRecordingUpstream((request, response) => {
      const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
      const challenge = `Bearer error="insufficient_scope", scope="${token}"`;
      response.writeHead(403, { 'x-ratelimit-limit': token, 'www-authenticate': challenge }).end(token);
    });
    const run = await runCheck('a parrot', environment({ SIDECAR_BASE_URL: parrot.url }), ['--probe', '/']);
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(
        /^probe .*403.*x-ratelimit-limit: not understood \(\d+ characters\) \(insufficient_scope: \*{8}\) -> .*SIDECAR_SCOPE/,
      ),
    ]);
    expect(run.stdout).not.toContain(tokens.issued.at(-1)?.value);
  });

  it.each([
    [['--probe', 'policies'], /--probe expects a path/],
    [['--probe', '/../admin'], undefined],
  ])('%j is refused', async (args, usage) => {
    const run = await runCheck(`a probe of ${args[1] ?? ''}`, environment(), args);
    if (usage === undefined) expect(run.lines('FAIL')).toEqual([expect.stringMatching(/^probe .*dot segment/)]);
    else expect(run.stderr).toMatch(usage);
    expect(run.code).toBe(usage === undefined ? 1 : 2);
  });
});

describe('several routes and credentials', () => {
  it('are checked one by one, a shared upstream once', async () => {
    await using other = await startTokenServer();
    const folder = scratchDirectory();
    const { id, secret } = newCredential();
    const file = join(folder, 'sidecar.yaml');
    writeFileSync(join(folder, 'secret'), secret, { mode: 0o600 });
    writeFileSync(
      file,
      `credentials:
  - { name: write, url: "${other.url}", clientId: "${id}", clientSecretFile: "${join(folder, 'secret')}", scope: policies.write }
  - { name: gone, url: "https://login.partner.invalid", clientId: "${id}", clientSecretFile: "${join(folder, 'secret')}", scope: a }
routes:
  - { name: quotes, pathPrefix: /quotes, credential: write, baseUrl: "${upstream.url}/v2" }
  - { name: gone, pathPrefix: /gone, credential: gone, baseUrl: "http://127.0.0.1:${await freePort()}" }
`,
    );
    const before = upstream.requests.length;
    const args = ['--config', file, '--probe', '/quotes/1'];
    const run = await runCheck('several routes', environment(), args);
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(/^connect +token endpoint gone .* -> check the name in url of the credential gone/),
      expect.stringMatching(/^connect +upstream gone .* -> .*baseUrl of the route gone/),
    ]);
    const upstreams = run.lines('ok').filter((line) => /^connect +upstream/.test(line));
    expect(upstreams).toHaveLength(1);
    expect(run.lines('ok').filter((line) => line.startsWith('token '))).toHaveLength(2);
    expect(upstream.requests.slice(before)).toMatchObject([
      { path: '/v2/quotes/1', headers: { authorization: `Bearer ${other.issued[0]?.value ?? ''}` } },
    ]);
  });
});

describe('the output', () => {
  it('is one JSON document with --json', async () => {
    const run = await runCheck('json', environment({ SIDECAR_BASE_URL: 'https://api.partner.invalid' }), ['--json']);
    const document = JSON.parse(run.stdout) as { ok: boolean; steps: Record<string, unknown>[] };
    expect(document.ok).toBe(false);
    for (const step of document.steps)
      expect(Object.keys(step)).toEqual(['step', 'target', 'outcome', 'ms', 'detail', 'advice']);
    expect(document.steps.filter(({ outcome }) => outcome === 'fail')).toMatchObject([
      { step: 'connect', target: 'upstream', advice: expect.stringContaining('SIDECAR_BASE_URL') as string },
    ]);
    expect(run).toMatchObject({ code: 1, stderr: '' });
  });

  it('is one JSON document for an invalid configuration as well', async () => {
    const run = await runCheck('json of nothing', { SIDECAR_RATE: 'fast' }, ['--json']);
    const document = JSON.parse(run.stdout) as { ok: boolean; steps: { target: string; outcome: string }[] };
    expect(document.ok).toBe(false);
    expect(document.steps).toContainEqual(
      expect.objectContaining({ step: 'configuration', target: 'throttle.rate', outcome: 'fail' }),
    );
    expect(run.code).toBe(2);
  });

  it('has colours only on a terminal or when forced', async () => {
    const colour = /\u001b\[3\dm/;
    expect((await runCheck('no terminal', environment())).stdout).not.toMatch(colour);
    expect((await runCheck('colours', environment({ FORCE_COLOR: '1' }))).stdout).toMatch(colour);
    expect((await runCheck('NO_COLOR', environment({ NO_COLOR: '1' }))).stdout).not.toMatch(colour);
  });

  it.each([
    [['run', '--json'], /--json belongs to check/],
    [['config', '--probe', '/a'], /--probe belongs to check/],
  ])('%j is no usage', async (args, words) => {
    const { spawnSidecar } = await import('../support/sidecar-process.ts');
    await using process = spawnSidecar({ name: 'check-usage', args });
    expect(await process.exit).toMatchObject({ code: 2 });
    expect(process.stderr()).toMatch(words);
  });
});
