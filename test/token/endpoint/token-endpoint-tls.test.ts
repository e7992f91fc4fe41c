/** TLS to the token endpoint, with certificates made for the test. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createSecureServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import { createServer as createPlainServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SecureVersion } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startOpensslServer } from '../../support/openssl-server.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';

/** Typed: vitest returns `any`. */
const containing = (text: string): unknown => expect.stringContaining(text);

let folder: string;
let certificate: string;
const servers: Server[] = [];

async function listen(maxVersion: SecureVersion): Promise<number> {
  const server = createServer(
    {
      key: await readFile(join(folder, 'key.pem')),
      cert: await readFile(certificate),
      minVersion: 'TLSv1',
      maxVersion,
      // OpenSSL 3 refuses versions before 1.2 at its default level.
      ciphers: 'DEFAULT@SECLEVEL=0',
    },
    (_request, response) => {
      response.end('{"access_token":"t0ken","token_type":"Bearer","expires_in":60}');
    },
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function ask(url: string, caFile: string | undefined): Promise<TokenRequestResult> {
  return askOnce(buildEndpoint(new URL(url), { caFile }));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'token-tls-'));
  certificate = join(folder, 'cert.pem');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'];
  const files = ['-keyout', join(folder, 'key.pem'), '-out', certificate];
  await promisify(execFile)('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files]);
});
afterAll(async () => {
  for (const server of servers) server.close();
  await rm(folder, { recursive: true });
});

test('an unknown authority is refused with a hint, that of auth.caFile is trusted', async () => {
  const url = `https://localhost:${String(await listen('TLSv1.3'))}/oauth/token`;
  expect(await ask(url, undefined)).toEqual({
    kind: 'unavailable',
    detail: containing(
      ' has a self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT); set upstream.caFile (SIDECAR_CA_FILE), or auth.caFile',
    ),
  });
  // Bundles have comments before their certificates.
  await writeFile(certificate, `# test\n${await readFile(certificate, 'utf8')}`);
  expect(await ask(url, certificate)).toMatchObject({ kind: 'ok', value: 't0ken' });
});

test('a certificate for another host is refused', async () => {
  const url = `https://127.0.0.1:${String(await listen('TLSv1.3'))}/oauth/token`;
  expect(await ask(url, certificate)).toMatchObject({
    detail: containing('for another host name: it is for localhost'),
  });
});

test('an expired certificate is reported without advice to trust an authority', async () => {
  using expired = makeCertificates({ days: -1 });
  const server = createServer({ key: expired.key, cert: expired.cert });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const result = await ask(`https://127.0.0.1:${String((server.address() as AddressInfo).port)}/`, expired.caFile);
  expect(result).toMatchObject({
    kind: 'unavailable',
    detail: containing(
      'has a certificate that has expired (CERT_HAS_EXPIRED); ask the operator to renew it, unless the clock here is wrong',
    ),
  });
  expect(JSON.stringify(result)).not.toMatch(/CA_FILE|caFile/);
});

test('a server that speaks only HTTP/2 is reported as such', async () => {
  using certificates = makeCertificates();
  const server = createHttp2Server({ key: certificates.key, cert: certificates.cert });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
  expect(await ask(url, certificates.caFile)).toMatchObject({
    kind: 'unavailable',
    detail: containing(
      ' speaks only HTTP/2, which is not supported (ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL); ask the operator for HTTP/1.1',
    ),
  });
  server.close();
});

test('TLS before 1.2 is refused', async () => {
  const url = `https://localhost:${String(await listen('TLSv1.1'))}/oauth/token`;
  expect(await ask(url, certificate)).toMatchObject({
    kind: 'unavailable',
    detail: containing('TLS version'),
  });
});

test('a port without TLS is reported as such', async () => {
  const server = createPlainServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://localhost:${String((server.address() as AddressInfo).port)}/oauth/token`;
  expect(await ask(url, certificate)).toMatchObject({ detail: containing('does not speak TLS') });
  server.close();
});

test('a CA file that is missing or holds no certificate is reported before anything is sent', async () => {
  const url = 'https://localhost:1/oauth/token';
  const empty = join(folder, 'empty.pem');
  await writeFile(empty, 'nothing here');
  const broken = join(folder, 'broken.pem');
  await writeFile(broken, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  expect(await ask(url, broken)).toMatchObject({ detail: containing('does not begin with a PEM certificate') });
  expect(await ask(url, join(folder, 'missing.pem'))).toMatchObject({
    detail: containing('does not exist'),
  });
  expect(await ask(url, empty)).toMatchObject({ detail: containing('does not begin with a PEM certificate') });
});

test('a server that requires a client certificate, or does not accept it, is reported as such', async () => {
  using certificates = makeCertificates();
  using strangers = makeCertificates();
  await using demanding = await startOpensslServer(certificates);
  const options = { caFile: certificates.caFile };
  const url = new URL('/oauth/token', demanding.url);
  expect(await askOnce(buildEndpoint(url, options))).toEqual({
    kind: 'unavailable',
    detail: containing(`${url.host} requires a client certificate (ERR_SSL_`),
  });
  const stranger = { ...options, clientCertificate: strangers.issue('stranger') };
  expect(await askOnce(buildEndpoint(url, stranger))).toEqual({
    kind: 'unavailable',
    detail: containing(`${url.host} does not accept the client certificate (ERR_SSL_`),
  });
});
