/** Each fault of a connection names its cause and the setting that fixes it. */
import { expect, test } from 'vitest';
import { explainFault } from '../../../../src/commands/check/evaluate/explain-fault.ts';
import { ConnectFault } from '../../../../src/platform/connection-faults.ts';
import { createProxyTimeoutFault } from '../../../../src/platform/egress/proxy-fault.ts';

const names = { address: 'BASE_URL', ca: 'CA_FILE', certificate: 'CERTIFICATE_FILE', caFile: undefined };
const context = { host: 'api.example', port: 443, names, wallNow: Date.UTC(2027, 0, 31) };
const errorOf = (code: string) => Object.assign(new Error('bytes of the server'), { code });

test.each([
  ['CERT_HAS_EXPIRED', /has expired/, /2027-01-31 is right, ask the operator of api\.example to renew it/],
  ['CERT_NOT_YET_VALID', /not valid yet/, /check the local clock: 2027-01-31/],
  ['ERR_TLS_CERT_ALTNAME_INVALID', /for another host name/, /BASE_URL.*names api\.example/],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', /self-signed/, /CA_FILE \(now the system's roots\)/],
  ['SELF_SIGNED_CERT_IN_CHAIN', /unknown authority/, /CA_FILE/],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /unknown authority/, /does not send its intermediate/],
  ['UNABLE_TO_GET_CRL', /not accepted/, /operator of api\.example.*CA_FILE/],
  ['CERT_REVOKED', /not accepted \(CERT_REVOKED\)/, /CA_FILE/],
  ['ERR_SSL_WRONG_VERSION_NUMBER', /does not use TLS on this port, perhaps plain HTTP/, /BASE_URL/],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /no TLS version of 1\.2 or newer/, /TLS 1\.2 or 1\.3/],
  ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', /ended the handshake/, /CERTIFICATE_FILE/],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', /requires a client certificate/, /CERTIFICATE_FILE/],
  ['ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', /does not accept the client certificate/, /CERTIFICATE_FILE/],
  ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', /the client certificate has expired/, /CERTIFICATE_FILE/],
  ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_REVOKED', /the client certificate is revoked/, /CERTIFICATE_FILE/],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', /does not know the authority of the client certificate/, /CERTIFICATE_FILE/],
  ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', /did not complete the handshake/, /network/],
  ['ERR_SSL_SSL/TLS_ALERT_UNRECOGNIZED_NAME', /does not know this host name/, /BASE_URL/],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', /speaks only HTTP\/2/, /HTTP\/1\.1/],
  ['ECONNRESET', /cut the connection/, /BASE_URL.*network/],
  ['ETIMEDOUT', /did not end the handshake in time/, /network/],
])('TLS: %s', (code, detail, advice) => {
  const found = explainFault('tls', errorOf(code), context);
  expect(found).toEqual({
    detail: expect.stringMatching(detail) as string,
    advice: expect.stringMatching(advice) as string,
  });
  expect(found.detail).toMatch(/^api\.example:443 /);
  expect(found.detail).toContain(`(${code})`);
  expect(found.detail).not.toContain('bytes of the server');
});

test('TCP: names every address, and what came of each', () => {
  const tried = [
    { address: '192.0.2.1:443', outcome: 'EHOSTUNREACH' },
    { address: '192.0.2.2:443', outcome: 'ECONNRESET' },
  ];
  expect(explainFault('tcp', new ConnectFault('api.example', tried), context)).toEqual({
    detail:
      'api.example:443 cut the connection (ECONNRESET); tried 192.0.2.1:443 (EHOSTUNREACH), 192.0.2.2:443 (ECONNRESET)',
    advice: expect.stringMatching(/between here and api\.example cuts connections/) as string,
  });
});

test('the proxy is named while it opens the tunnel, and not for what comes later', () => {
  const fault = createProxyTimeoutFault('proxy.example:3128', 300);
  expect(explainFault('tunnel', fault, context)).toEqual({
    detail: 'the egress proxy proxy.example:3128 opened no connection within 300 ms',
    advice: expect.stringMatching(/allow api\.example:443 .*SIDECAR_EGRESS_NO_PROXY/) as string,
  });
  expect(explainFault('tls', fault, context).detail).toBe(
    'api.example:443 did not end the handshake in time (ETIMEDOUT)',
  );
});
