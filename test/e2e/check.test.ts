/**
 * `check` as a doctor: set-ups that are broken in one way each, with servers as a person would meet them, and an output that points
 * at the cause. Each output is printed.
 */
import { randomBytes } from 'node:crypto';
import { createSecureServer as createHttp2Server } from 'node:http2';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createSilentServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startMockServer } from '../peers/authorization-servers.ts';
import { startAuthorizationServer } from '../support/authorization-server.ts';
import type { AuthorizationServer } from '../support/authorization-server.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { CertificateOptions } from '../support/certificates.ts';
import { runCheck } from '../support/check-run.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { mountSecret } from '../support/mounted-secret.ts';
import { startNginx, startVerifyingNginx } from '../support/nginx.ts';
import { startOpensslServer } from '../support/openssl-server.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';
import type { Environment } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

const running = new AsyncDisposableStack();
let authorization: AuthorizationServer;
let upstreamUrl: string;

beforeAll(async () => {
  authorization = running.use(await startAuthorizationServer('jwt'));
  upstreamUrl = running.use(await startNginx()).url;
});
afterAll(() => running.disposeAsync());

/** Everything right, with changes. */
function environment(changes: Environment = {}): Environment {
  return {
    ...baseSettings(upstreamUrl, authorization.url, authorization.credential),
    SIDECAR_SCOPE: authorization.scope,
    ...changes,
  };
}

/** The faults are these and no others; each says what to do. */
async function expectFaults(name: string, changes: Environment, faults: readonly RegExp[]) {
  const run = await runCheck(name, environment(changes));
  expect(run.lines('FAIL')).toEqual(faults.map((fault) => expect.stringMatching(fault) as string));
  for (const line of [...run.lines('FAIL'), ...run.lines('warn')]) expect(line).toMatch(/ -> \S+/);
  expect(run.code).toBe(faults.length === 0 ? 0 : 1);
  return run;
}

it('with everything right says so, step by step, and exits with 0', async () => {
  const run = await runCheck('everything right', environment());
  expect(run.code).toBe(0);
  const scope = authorization.scope.replaceAll('.', '\\.');
  const ms = String.raw`\d+(?:\.\d)? ms`;
  expect(run.stdout.split('\n').map((line) => line.replace(/ +/g, ' '))).toEqual(
    [
      'ok configuration settings valid',
      `ok configuration client id ${environment().SIDECAR_CLIENT_ID ?? ''}`,
      `ok connect token endpoint ${ms} 127\\.0\\.0\\.1:\\d+ \\(connected\\)`,
      `ok token token endpoint ${ms} obtained from ${authorization.url}/oauth/token`,
      `ok scope token endpoint granted: ${scope}`,
      'ok lifetime token endpoint valid for 3600 s \\(until \\S+Z\\), renewed after 2700 s to 3060 s',
      'ok clock token endpoint its clock agrees with ours',
      `ok connect upstream ${ms} 127\\.0\\.0\\.1:\\d+ \\(connected\\)`,
      'skip clock upstream the upstream is called only with --probe PATH',
      '0 FAIL, 0 warn, 8 ok, 1 skip',
      'Next: (?:\\S*node \\S+main\\.[jt]s|\\S*bearer-sidecar)',
      '',
    ].map((line) => expect.stringMatching(new RegExp(`^${line}$`)) as string),
  );
});

describe('the token endpoint', () => {
  it('refuses a wrong secret', async () => {
    const secret = randomBytes(18).toString('hex');
    registerSecret('a client secret', secret);
    const run = await expectFaults('a wrong secret', { SIDECAR_CLIENT_SECRET: secret }, [
      /^token .*"invalid_client": client authentication failed -> .*SIDECAR_CLIENT_SECRET/,
    ]);
    expect(run.lines('skip')).toContainEqual(expect.stringMatching(/^scope .*there is no token$/));
  });

  it('takes a request in JSON with a secret in a file, and refuses one for nothing', async () => {
    const secret = randomBytes(18).toString('hex');
    registerSecret('an extra parameter', secret);
    await using mounted = await mountSecret({ key: secret });
    await using server = await startRecordingUpstream(({ body, headers }, response) => {
      const isJson = headers['content-type'] === 'application/json';
      const sent = isJson ? (JSON.parse(body.toString()) as Record<string, unknown>) : {};
      response.writeHead(sent.apiKey === secret && 'audience' in sent ? 200 : 400).end(
        // An echo of the secret in both.
        JSON.stringify({
          access_token: 'a-token',
          expires_in: 3600,
          error: 'invalid_request',
          error_description: secret,
        }),
      );
    });
    const changes = {
      ...{ SIDECAR_AUTH_URL: server.url, SIDECAR_AUTH_METHOD: 'none', SIDECAR_AUTH_BODY_FORMAT: 'json' },
      ...{ SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_SCOPE: '', SIDECAR_AUTH_GRANT_TYPE: 'api_key' },
      SIDECAR_AUTH_EXTRA_PARAMETERS: JSON.stringify({ apiKey: { file: mounted.path('key') } }),
    };
    const named = await expectFaults('a request in JSON', { ...changes, SIDECAR_AUDIENCE: 'https://api.test' }, []);
    expect(named.lines('ok')).toContainEqual(
      expect.stringMatching(/^token .*, grant type "api_key", request in JSON$/),
    );
    expect(named.lines('ok')).toContainEqual(expect.stringContaining(`${mounted.path('key')}, mode`));
    const unnamed = await expectFaults('a request for nothing', { ...changes, SIDECAR_AUDIENCE: '' }, [
      /^token .*"invalid_request".*; none of auth\.audience, auth\.scope and auth\.resource is set -> ask the partner what to request, and set /,
    ]);
    expect(named.stdout + unnamed.stdout).not.toContain(secret);
  });

  it('decodes a secret that is sent as it is', async () => {
    const changes = { SIDECAR_CLIENT_SECRET: newCredential().secret };
    await expectFaults('a secret with a percent sign', changes, [
      /^token .*"invalid_request": .* not properly encoded -> .*SIDECAR_AUTH_BASIC_ENCODING\) form/,
    ]);
  });

  it('explains a refusal, and states no lifetime', async () => {
    const words = { error: 'invalid_client', error_description: 'AADSTS7000222: keys are expired.', trace_id: 't-1' };
    let status = 401;
    await using server = await startRecordingUpstream((_, response) => {
      const grant = { access_token: 'a-token', token_type: 'Bearer' };
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(status === 401 ? words : grant));
    });
    const changes = { SIDECAR_AUTH_URL: server.url, SIDECAR_AUTH_TOKEN_PATH: '/t?key=sesame-open&b' };
    await expectFaults('a refusal with a description', changes, [
      /^token .*"invalid_client": AADSTS7000222: keys are expired\. \(trace_id t-1\) -> .*SIDECAR_CLIENT_SECRET/,
    ]);
    status = 200;
    const run = await expectFaults('a token without a lifetime', changes, []);
    expect(run.lines('warn')).toEqual([
      expect.stringMatching(/^lifetime .*no expires_in.*300 s.* -> .*SIDECAR_AUTH_DEFAULT_LIFETIME_MS/),
    ]);
    expect(run.stdout).toContain(`obtained from ${server.url}/t?key=********&********`);
    expect(run.stdout).not.toContain('sesame-open');
    expect(server.requests.map(({ path }) => path)).toEqual(['/t?key=sesame-open&b', '/t?key=sesame-open&b']);
  });

  it('is not at this path', async () => {
    await expectFaults('a wrong token path', { SIDECAR_AUTH_TOKEN_PATH: '/token/of/others' }, [
      /^token .*POST \S+\/token\/of\/others returned 404 -> .*SIDECAR_AUTH_TOKEN_PATH/,
    ]);
  });

  it('is there twice in the path', async () => {
    const changes = { SIDECAR_AUTH_URL: `${authorization.url}/oauth/token` };
    const run = await expectFaults('a token URL as auth.url', changes, [
      /^token .*POST \S+\/oauth\/token\/oauth\/token returned 404 -> .*twice; .*set auth\.url \(SIDECAR_AUTH_URL\) to \S+:\d+ and auth\.tokenPath \(SIDECAR_AUTH_TOKEN_PATH\) to \/oauth\/token$/,
    ]);
    expect(run.stdout).toMatch(/\nNext, when that is corrected: (?:\S*node \S+|\S*bearer-sidecar) check\n$/);
  });

  it.each(['', '/realms/partner'])('is published by the same origin at the issuer %j', async (path) => {
    await using server = await startRecordingUpstream(({ path: target }, response) => {
      const issuer = `${server.url}${path}`;
      if (target !== `${path}/.well-known/openid-configuration`) response.writeHead(404).end();
      else response.end(JSON.stringify({ issuer, token_endpoint: `${issuer}/connect/issue?v=1` }));
    });
    const changes = { SIDECAR_AUTH_URL: `${server.url}${path}/x` };
    await expectFaults('a published token endpoint', changes, [
      new RegExp(
        `^token .*openid-configuration names \\S+/connect/issue\\S*: set auth\\.url \\(SIDECAR_AUTH_URL\\) to ${server.url} and auth\\.tokenPath \\(SIDECAR_AUTH_TOKEN_PATH\\) to ${path}/connect/issue`,
      ),
    ]);
    const [token, ...others] = server.requests;
    expect(token?.method).toBe('POST');
    expect(others.length).toBeGreaterThan(0);
    for (const { method, headers, body, path: target } of others) {
      expect([method, headers.authorization, body.length]).toEqual(['GET', undefined, 0]);
      expect(target).toContain('/.well-known/');
    }
  });

  it('is a web page', async () => {
    await using page = await startRecordingUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>log in, please</html>');
    });
    await expectFaults('a web page instead of a token endpoint', { SIDECAR_AUTH_URL: page.url }, [
      /^token .*a web page \(HTML\) -> .*SIDECAR_AUTH_URL/,
    ]);
  });

  it('does not grant a scope that was asked for', async () => {
    await using narrow = await startGranting({ scope: 'quotes.read' });
    const changes = { SIDECAR_AUTH_URL: narrow.url, SIDECAR_SCOPE: 'quotes.read quotes.write' };
    await expectFaults('a scope that is not granted', changes, [
      /^scope .*not granted: quotes\.write; granted: quotes\.read -> .*SIDECAR_SCOPE/,
    ]);
  });

  it('refuses a scope that the client may not have', async () => {
    const changes = { SIDECAR_SCOPE: 'urn:example.partners.sales.individual.travel.quotesrequests.write' };
    await expectFaults('a scope that is refused', changes, [
      /^token .*"invalid_scope": requested scope is not allowed -> .*SIDECAR_SCOPE.*partner/,
    ]);
  });

  it('has a name that does not exist', async () => {
    const run = await expectFaults(
      'a name that does not exist',
      { SIDECAR_AUTH_URL: 'https://login.partner.invalid' },
      [
        /^connect .*login\.partner\.invalid:443 has a host name that cannot be resolved \(ENOTFOUND\) -> .*SIDECAR_AUTH_URL/,
      ],
    );
    expect(run.lines('skip').filter((line) => line.includes(' token endpoint '))).toHaveLength(4);
  });

  it('is not what the issuer names', async () => {
    await using mock = await startMockServer();
    const changes = { SIDECAR_AUTH_URL: '', SIDECAR_AUTH_ISSUER: `${mock.issuer}/` };
    await expectFaults('another issuer', changes, [/^discovery .*names .* as the issuer.* -> .*SIDECAR_AUTH_ISSUER/]);
  });

  it('is found by its issuer', async () => {
    await using mock = await startMockServer();
    const run = await runCheck('an issuer', environment({ SIDECAR_AUTH_URL: '', SIDECAR_AUTH_ISSUER: mock.issuer }));
    expect(run.lines('ok')).toContainEqual(expect.stringMatching(/^discovery .*names \S+\/token$/));
    expect(run.lines('ok')).toContainEqual(expect.stringMatching(/^token .*obtained from \S+\/token$/));
    expect(run.code).toBe(0);
  });

  it.each([
    [45, /^lifetime .*valid for 45 s .* -> .*longer/],
    [200_000, /^lifetime .*valid for 200000 s .* -> .*shorter/],
  ])('gives tokens for %i s', async (expiresIn, warning) => {
    await using tokens = await startTokenServer({ expiresIn });
    const run = await expectFaults(`tokens for ${String(expiresIn)} s`, { SIDECAR_AUTH_URL: tokens.url }, []);
    expect(run.lines('warn')).toEqual([expect.stringMatching(warning)]);
  });
});

/** A token endpoint with an unusual response. */
async function startGranting({ scope, offsetMs = 0 }: { scope?: string; offsetMs?: number }) {
  return startRecordingUpstream((_, response) => {
    const token = newCredential().secret.replaceAll(/[^\w-]/g, '');
    registerSecret('an access token', token);
    response.sendDate = false;
    response.setHeader('date', new Date(Date.now() + offsetMs).toUTCString());
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600, scope }));
  });
}

describe('the clock', () => {
  it('of the token endpoint is an hour ahead', async () => {
    await using server = await startGranting({ offsetMs: 3_600_000 });
    const run = await expectFaults('a clock an hour ahead', { SIDECAR_AUTH_URL: server.url }, []);
    expect(run.lines('warn')).toEqual([expect.stringMatching(/^clock .*3(600|599) s ahead of ours.* -> .*NTP/)]);
  });

  it('is a fault where assertions are signed', async () => {
    using certificates = makeCertificates();
    await using server = await startGranting({ offsetMs: -3_600_000 });
    const changes = {
      SIDECAR_AUTH_URL: server.url,
      SIDECAR_CLIENT_SECRET: '',
      SIDECAR_AUTH_METHOD: 'private_key_jwt',
      SIDECAR_AUTH_PRIVATE_KEY_FILE: certificates.serverFiles.keyFile,
    };
    await expectFaults('a clock an hour behind, and assertions', changes, [
      /^clock .*3(600|599) s behind ours.*assertions.* -> .*NTP/,
    ]);
  });
});

describe('the upstream', () => {
  async function startSecure(options: CertificateOptions) {
    await using cleanup = new AsyncDisposableStack();
    const certificates = cleanup.use(makeCertificates(options));
    const { key, cert, caFile } = certificates;
    const server = createSecureServer({ key, cert });
    const url = (await listenOnLoopback(server)).replace('http:', 'https:');
    cleanup.defer(() => closeServer(server));
    const all = cleanup.move();
    return { url, caFile, [Symbol.asyncDispose]: () => all.disposeAsync() };
  }

  it('has a certificate of an unknown authority', async () => {
    await using server = await startSecure({ days: 90 });
    await expectFaults('an unknown authority', { SIDECAR_BASE_URL: server.url }, [
      /^tls .*127\.0\.0\.1:\d+ has a certificate of an unknown authority.* -> set upstream\.caFile \(SIDECAR_CA_FILE\)/,
    ]);
  });

  it('has a certificate that has expired', async () => {
    await using server = await startSecure({ days: -1 });
    const changes = { SIDECAR_BASE_URL: server.url, SIDECAR_CA_FILE: server.caFile };
    await expectFaults('an expired certificate', changes, [
      /^tls .*has a certificate that has expired.* -> ask the operator to renew it.*local date \d{4}-\d\d-\d\d/,
    ]);
  });

  it('speaks only HTTP/2', async () => {
    using certificates = makeCertificates();
    const server = createHttp2Server({ key: certificates.key, cert: certificates.cert });
    running.defer(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    await expectFaults('only HTTP/2', { SIDECAR_BASE_URL: url, SIDECAR_CA_FILE: certificates.caFile }, [
      /^tls .*speaks only HTTP\/2, which is not supported .* -> ask .* for HTTP\/1\.1/,
    ]);
  });

  it('has a certificate for another name', async () => {
    await using server = await startSecure({ names: 'DNS:api.partner.example,DNS:www.partner.example' });
    const changes = { SIDECAR_BASE_URL: server.url, SIDECAR_CA_FILE: server.caFile };
    await expectFaults('a certificate for another name', changes, [
      /^tls .*it is for api\.partner\.example, www\.partner\.example .* -> .*SIDECAR_BASE_URL/,
    ]);
  });

  it('has a certificate that ends soon', async () => {
    await using server = await startSecure({ days: 5 });
    const changes = { SIDECAR_BASE_URL: server.url, SIDECAR_CA_FILE: server.caFile };
    const run = await expectFaults('a certificate that ends soon', changes, []);
    expect(run.lines('warn')).toContainEqual(
      expect.stringMatching(/^tls .*TLSv1\.3.*[1-5] days left.* -> .*renewed in time/),
    );
  });

  it('is not there', async () => {
    const url = `https://127.0.0.1:${String(await freePort())}`;
    await expectFaults('a closed port', { SIDECAR_BASE_URL: url }, [
      /^connect .*refused the connection \(ECONNREFUSED\).* -> nothing listens there.*SIDECAR_BASE_URL/,
    ]);
  });

  it('speaks plain HTTP where https: is configured', async () => {
    const url = upstreamUrl.replace('http:', 'https:');
    await expectFaults('plain HTTP behind an https URL', { SIDECAR_BASE_URL: url }, [
      /^tls .*does not speak TLS on this port, perhaps plain HTTP.* -> check scheme and port in .*SIDECAR_BASE_URL/,
    ]);
  });

  it('takes a connection and says nothing', async () => {
    const silent = createSilentServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    running.defer(() => void silent.close());
    const url = `https://127.0.0.1:${String((silent.address() as AddressInfo).port)}`;
    const changes = { SIDECAR_BASE_URL: url, SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS: '300' };
    await expectFaults('a server that says nothing', changes, [
      /^tls .*the TLS handshake was not complete within 300 ms: upstream\.connectTimeoutMs.* -> /,
    ]);
  });

  it('demands a client certificate: by TLS', async () => {
    using certificates = makeCertificates();
    await using openssl = await startOpensslServer(certificates);
    const changes = { SIDECAR_BASE_URL: openssl.url.href, SIDECAR_CA_FILE: certificates.caFile };
    await expectFaults('a client certificate that is missing', changes, [
      /^tls .*requires a client certificate.* -> set .*SIDECAR_UPSTREAM_TLS_CERTIFICATE_FILE/,
    ]);
  });

  it('demands a client certificate: by HTTP, which is to come', async () => {
    using certificates = makeCertificates();
    await using nginx = await startVerifyingNginx(certificates);
    const changes = { SIDECAR_BASE_URL: nginx.url, SIDECAR_CA_FILE: certificates.caFile };
    await expectFaults('a client certificate that is asked for', changes, []);
    const { certificateFile, keyFile } = certificates.issue('legacy-app');
    const own = { SIDECAR_UPSTREAM_TLS_CERTIFICATE_FILE: certificateFile, SIDECAR_UPSTREAM_TLS_KEY_FILE: keyFile };
    const better = await runCheck('a client certificate that is shown', environment({ ...changes, ...own }), [
      '--probe',
      '/',
    ]);
    expect(better.stdout).toContain('our certificate offered');
    expect(better.lines('ok')).toContainEqual(expect.stringMatching(/^probe .*responded with 200/));
  });
});

describe('a probe', () => {
  it('takes the way of a GET to its path: by the prefix, by the methods, without a stripped prefix', async () => {
    await using upstream = await startRecordingUpstream((_, response) => void response.end());
    const routes = [
      { name: 'write', pathPrefix: '/sales', methods: ['POST'], baseUrl: `${upstream.url}/written` },
      { name: 'read', pathPrefix: '/sales', stripPrefix: true, baseUrl: `${upstream.url}/read` },
    ];
    await using folder = await mountSecret({ 'sidecar.yaml': JSON.stringify({ routes }) });
    const env = environment({ SIDECAR_CONFIG: folder.path('sidecar.yaml') });
    await runCheck('a probe of a route', env, ['--probe', '/sales/7?page=2']);
    expect(upstream.requests.map(({ path }) => path)).toEqual(['/read/7?page=2']);
  });
});

describe('interrupted', () => {
  it('it says what it has found so far, and ends at once with 1', async () => {
    const requested = Promise.withResolvers<undefined>();
    await using silent = await startRecordingUpstream(() => requested.resolve(undefined));
    const env = environment({ SIDECAR_AUTH_URL: silent.url });
    await using check = spawnSidecar({ name: 'check-interrupted', args: ['check'], env });
    await requested.promise;
    expect(await check.stop('SIGINT')).toEqual({ code: 1, signal: null });
    console.log(check.stdout());
    expect(check.stdout()).toMatch(/^skip +token +token endpoint .*interrupted$/m);
  });
});
