/** The certificate that is shown to an upstream which asks for one: offered, missing, replaced under a running process. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTlsContextProvider } from '../../src/platform/tls.ts';
import type { ClientCertificateFiles } from '../../src/platform/tls.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { closeServer } from '../support/loopback.ts';
import { startOpensslServer } from '../support/openssl-server.ts';
import { openUpstream, send } from './wire.ts';

const folder = mkdtempSync(join(tmpdir(), 'client-certificate-'));
const files: ClientCertificateFiles = { certificateFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
const running = new AsyncDisposableStack();
let certificates: Certificates;
/** Of an authority that no one here knows. */
let strangers: Certificates;
let url: URL;
/** The subject that each request came with. */
let seen: (string | undefined)[];

beforeAll(async () => {
  certificates = running.use(makeCertificates());
  strangers = running.use(makeCertificates());
  const { key, cert, ca } = certificates;
  const server = createServer({ key, cert, ca, requestCert: true }, (request, response) => {
    const { socket } = request;
    seen.push(socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.subject : 'no TLS');
    response.setHeader('connection', 'close').end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  running.defer(() => closeServer(server));
  url = new URL(`https://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
});
afterAll(async () => {
  await running.disposeAsync();
  rmSync(folder, { recursive: true });
});

function install({ certificateFile, keyFile }: Partial<ClientCertificateFiles>): void {
  if (certificateFile !== undefined) copyFileSync(certificateFile, files.certificateFile);
  if (keyFile !== undefined) copyFileSync(keyFile, files.keyFile);
}

beforeEach(() => {
  seen = [];
  install(certificates.issue('first'));
});

const trust = (shown?: ClientCertificateFiles) => createTlsContextProvider(certificates.caFile, shown);

describe('an upstream that asks for a certificate', () => {
  it('is shown it', async () => {
    await using upstream = openUpstream(url, { trust: trust(files) });
    expect(await send(upstream).end).toMatchObject({ kind: 'relayed', fault: undefined });
    expect(seen).toEqual(['CN=first']);
  });

  it.each([
    ['there is none to show', () => undefined],
    ['it does not know the authority', () => strangers.issue('stranger')],
  ])('is named when %s', async (_, shown) => {
    await using server = await startOpensslServer(certificates);
    await using upstream = openUpstream(server.url, { trust: trust(shown()) });
    const end = await send(upstream).end;
    expect(end).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', proxyStatus: 'tls_certificate_error', permanent: true },
    });
    expect(end.kind === 'failed' ? end.failure.advice : '').toContain('set upstream.tlsCertificateFile');
  });

  it('of another kind is served by the same', async () => {
    await using server = await startOpensslServer(certificates);
    await using upstream = openUpstream(server.url, { trust: trust(files) });
    expect(await send(upstream).end).toMatchObject({ kind: 'relayed', head: { status: 200 } });
  });

  it('is shown a new one as soon as certificate and key are both replaced', async () => {
    await using upstream = openUpstream(url, { trust: trust(files) });
    await send(upstream).end;
    const next = certificates.issue('second');
    install({ certificateFile: next.certificateFile });
    await send(upstream).end;
    install({ keyFile: next.keyFile });
    await send(upstream).end;
    rmSync(files.keyFile);
    await send(upstream).end;
    expect(seen).toEqual(['CN=first', 'CN=first', 'CN=second', 'CN=second']);
  });
});

describe('files that cannot be used at the start', () => {
  it('are named', () => {
    const other = certificates.issue('other');
    const mixed = { ...files, keyFile: other.keyFile };
    expect(() => trust(mixed)).toThrow(
      `the files ${files.certificateFile} and ${other.keyFile}: the key does not belong to the certificate`,
    );
    expect(() => trust({ ...files, certificateFile: files.keyFile })).toThrow('the certificate is no PEM certificate');
    expect(() => trust({ ...files, keyFile: files.certificateFile })).toThrow('the key is no PEM private key');
    expect(() => trust({ ...files, keyFile: '/nowhere' })).toThrow('ENOENT');
  });
});
