/** The faults of connections on real servers: reply, log, verdict, page and `check` have the same words and the same advice. */
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { CertificateOptions, Certificates } from '../support/certificates.ts';
import { runCheck } from '../support/check-run.ts';
import { freePort } from '../support/loopback.ts';
import { startNginx } from '../support/nginx.ts';
import { startOpensslServer } from '../support/openssl-server.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import type { TokenServer } from '../support/token-server.ts';

const running = new AsyncDisposableStack();
let certificates: Certificates;
let tokens: TokenServer;
beforeAll(async () => {
  certificates = running.use(makeCertificates());
  tokens = running.use(await startTokenServer());
});
afterAll(() => running.disposeAsync());

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  running.defer(() => void server.close());
  return `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

async function toOpenssl(demands: readonly string[], options?: CertificateOptions): Promise<Environment> {
  const own = options === undefined ? certificates : running.use(makeCertificates(options));
  const { url } = running.use(await startOpensslServer(own, demands));
  return { SIDECAR_BASE_URL: url.href, SIDECAR_CA_FILE: own.caFile };
}

async function toSocket(serve: (socket: Socket) => void): Promise<Environment> {
  const host = await listen(createServer((socket) => serve(socket.on('error', () => undefined))));
  return { SIDECAR_BASE_URL: `https://${host}`, SIDECAR_CA_FILE: certificates.caFile };
}

/** Through a proxy that responds to CONNECT with this. */
async function toProxy(head: string): Promise<Environment> {
  const proxy = createHttpServer().on('connect', (_, socket) => socket.end(`HTTP/1.1 ${head}\r\n\r\n`));
  return { SIDECAR_BASE_URL: 'https://api.partner.test', SIDECAR_EGRESS_PROXY: `http://${await listen(proxy)}` };
}

const cannotReach = (words: string): RegExp => new RegExp(`cannot be reached: the egress proxy [\\d.:]+ ${words}`);

interface Fault {
  readonly env: () => Promise<Environment>;
  readonly words: RegExp;
  readonly advice: RegExp;
  /** Retries of a GET. */
  readonly retries: number;
  /** Of `check`. Default: none */
  readonly args?: readonly string[];
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'closed port': {
    env: async () => ({ SIDECAR_BASE_URL: `https://127.0.0.1:${String(await freePort())}` }),
    words: /refused the connection \(ECONNREFUSED\)/,
    advice: /check host and port in upstream\.baseUrl/,
    retries: 3,
  },
  'unknown host': {
    env: () => Promise.resolve({ SIDECAR_BASE_URL: 'https://api.partner.invalid' }),
    words: /has a host name that cannot be resolved \(ENOTFOUND\)/,
    advice: /check the name in upstream\.baseUrl/,
    retries: 3,
  },
  'plain HTTP on the TLS port': {
    env: async () => ({ SIDECAR_BASE_URL: running.use(await startNginx()).url.replace('http:', 'https:') }),
    words: /does not speak TLS on this port, perhaps plain HTTP \(ERR_SSL_\w+\)/,
    advice: /check scheme and port in upstream\.baseUrl/,
    retries: 0,
  },
  'TLS on the port for plain HTTP': {
    env: async () => {
      const { SIDECAR_BASE_URL: url = '' } = await toOpenssl([]);
      return { SIDECAR_BASE_URL: url.replace('https:', 'http:') };
    },
    words: /closed the connection before its response was complete \(UND_ERR_SOCKET\)/,
    advice: /with http: in upstream\.baseUrl \(SIDECAR_BASE_URL\), the server may speak TLS alone/,
    retries: 3,
    args: ['--probe', '/policies/1'],
  },
  'a folded header field': {
    env: async () => {
      const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Served-By: a,\r\n b\r\n\r\nok';
      const serve = (socket: Socket): void =>
        void socket.on('error', () => undefined).once('data', () => socket.end(head));
      return { SIDECAR_BASE_URL: `http://${await listen(createServer(serve))}` };
    },
    words: /sent a response that is not valid HTTP: a header field is folded over two lines \(HTTPParserError\)/,
    advice: /ask the operator to correct its responses/,
    retries: 0,
    args: ['--probe', '/policies/1'],
  },
  'expired certificate': {
    env: () => toOpenssl([], { days: -1 }),
    words: /has a certificate that has expired \(CERT_HAS_EXPIRED\)/,
    advice: /ask the operator to renew it, unless the clock here is wrong/,
    retries: 0,
  },
  'unknown authority': {
    env: async () => ({ ...(await toOpenssl([])), SIDECAR_CA_FILE: '' }),
    words:
      /has a certificate of an unknown authority \((?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN)\)/,
    advice: /set upstream\.caFile \(SIDECAR_CA_FILE\)/,
    retries: 0,
  },
  'wrong host': {
    env: () => toOpenssl([], { names: 'DNS:api.partner.example' }),
    words: /has a certificate for another host name: it is for api\.partner\.example \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    advice: /correct the name in upstream\.baseUrl/,
    retries: 0,
  },
  'required client certificate': {
    env: () => toOpenssl(['-Verify', '1', '-verify_return_error']),
    words: /requires a client certificate \(ERR_SSL_\S+_ALERT_CERTIFICATE_REQUIRED\)/,
    advice: /set upstream\.tlsCertificateFile/,
    retries: 0,
  },
  'required client certificate, TLS 1.2': {
    env: () => toOpenssl(['-Verify', '1', '-verify_return_error', '-tls1_2']),
    words: /ended the TLS handshake \(ERR_SSL_\S+_ALERT_HANDSHAKE_FAILURE\)/,
    advice: /set upstream\.tlsCertificateFile \(SIDECAR_UPSTREAM_TLS_CERTIFICATE_FILE\) if it requires/,
    retries: 0,
  },
  'TLS 1.0 only': {
    env: () => toOpenssl(['-tls1', '-cipher', 'DEFAULT@SECLEVEL=0']),
    words: /offers no TLS version from 1\.2 on \(ERR_SSL_\S+\)/,
    advice: /ask the operator for TLS 1\.2 or 1\.3/,
    retries: 0,
  },
  'weak key': {
    env: () => toOpenssl(['-cipher', 'DEFAULT@SECLEVEL=0'], { serverKey: ['-newkey', 'rsa:1024', '-nodes'] }),
    words: /has a weak key or signature: [\w ]+ \(\w+\)/,
    advice: /a key of 2048 bits or more/,
    retries: 0,
  },
  'no group in common': {
    env: async () => ({ ...(await toOpenssl(['-groups', 'P-521'])), SIDECAR_UPSTREAM_TLS_GROUPS: 'X25519' }),
    words: /ended the TLS handshake \(ERR_SSL_\S+_ALERT_HANDSHAKE_FAILURE\)/,
    advice: /ask the operator/,
    retries: 0,
  },
  'reset in the handshake': {
    env: () => toSocket((socket) => socket.once('data', () => socket.resetAndDestroy())),
    words: /cut the connection in the TLS handshake, before it sent a byte \(ECONNRESET\)/,
    advice: /try X25519:P-256 for upstream\.tlsGroups/,
    retries: 3,
  },
  'no answer to the handshake': {
    env: async () => ({ ...(await toSocket(() => undefined)), SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS: '300' }),
    words: /cannot be reached: the TLS handshake was not complete within 300 ms: upstream\.connectTimeoutMs/,
    advice: /interferes with TLS/,
    retries: 3,
  },
  'a proxy that forbids the destination': {
    env: () => toProxy('403 Forbidden'),
    words: cannotReach('does not allow a connection to api\\.partner\\.test:443 \\(403\\)'),
    advice: /let the proxy allow api\.partner\.test:443/,
    retries: 0,
  },
  'a proxy that asks for credentials': {
    env: () => toProxy('407 Authenticate\r\nProxy-Authenticate: Basic realm="out"'),
    words: cannotReach('asks for credentials \\(407\\)'),
    advice: /add user and password to egress\.proxy/,
    retries: 0,
  },
  'a proxy whose schemes are not spoken': {
    env: () => toProxy('407 Authenticate\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM'),
    words: cannotReach('asks for credentials by Negotiate or NTLM, which is not supported \\(407\\)'),
    advice: /ask who runs the proxy for Basic/,
    retries: 0,
  },
  'a proxy that reaches nothing': {
    env: () => toProxy('502 Bad Gateway'),
    words: cannotReach('could not connect to api\\.partner\\.test:443 \\(502\\)'),
    advice: /whether other destinations work/,
    retries: 3,
  },
};

it.each(Object.entries(FAULTS))('%s', async (name, { env: createEnv, words, advice, retries, args = [] }) => {
  const env = { ...baseSettings('https://unused.test', tokens.url, newCredential()), ...(await createEnv()) };
  await using sidecar = await startSidecar({ name: `fault-${name.replaceAll(/\W+/g, '-')}`, env });
  await waitUntilReady(sidecar);
  const call = async () => (await (await fetch(`${sidecar.proxyUrl}/policies/1`)).json()) as { detail: string };
  const first = await call();
  const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  const counts = [...metrics.matchAll(/^bearer_sidecar_retries_total\{.*\} (\d+)$/gm)];
  const count = counts.reduce((sum, [, value]) => sum + Number(value), 0);
  await Promise.all(Array.from({ length: 9 }, call));
  await sleep(1200);
  const { verdict } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Status;
  const page = decode(await (await fetch(`${sidecar.adminUrl}/`)).text());
  const log =
    sidecar
      .stdout()
      .split('\n')
      .find((line) => line.includes('/policies/1')) ?? '';
  const check = await runCheck(`fault ${name}`, env, args);
  const clause = words.exec(first.detail)?.[0] ?? 'not in the reply';
  console.log(
    [`${name}: ${String(count)} retries`, `reply   ${first.detail}`, `log     ${log}`].join('\n'),
    `\nverdict ${verdict.headline} | ${verdict.detail} | ${verdict.advice ?? ''}\ncheck   ${check.lines('FAIL').join('\n')}`,
  );
  expect(first.detail).toMatch(words);
  expect(first.detail).toMatch(advice);
  expect(log).toContain(JSON.stringify(clause).slice(1, -1));
  expect(verdict.detail).toContain(clause);
  expect(page).toContain(clause);
  expect(check.lines('FAIL')).toEqual([expect.stringContaining(clause) as string]);
  for (const text of [verdict.advice ?? '', page, check.stdout]) expect(text.toLowerCase()).toMatch(lowerCase(advice));
  expect(count).toBe(retries);
});

const lowerCase = ({ source }: RegExp): RegExp => new RegExp(source, 'i');

function decode(html: string): string {
  return html.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}
