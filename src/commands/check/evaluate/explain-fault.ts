/** Why a connection was not ready, and what to do: by the step that failed, and by the code of the error. Pure. */
import {
  CERTIFICATE_CODE,
  describeConnectionError,
  describeTriedAddresses,
  errorCodeOf,
} from '../../../platform/connection-faults.ts';
import { ProxyFault } from '../../../platform/egress/proxy-fault.ts';
import { formatAuthority } from '../../../platform/open-connection.ts';

export type ConnectionStep = 'dns' | 'tcp' | 'tunnel' | 'tls';

export interface ServerSettingNames {
  readonly address: string;
  readonly ca: string;
  readonly certificate: string;
  /** The file of trusted authorities; undefined: the system's roots. */
  readonly caFile: string | undefined;
}

export interface FaultContext {
  readonly host: string;
  readonly port: number;
  readonly names: ServerSettingNames;
  readonly wallNow: number;
}

/** What to do, by what is probably wrong. */
const listAdvice = ({ host, port, names: { address, ca, certificate, caFile }, wallNow }: FaultContext) => {
  const authority = formatAuthority(host, port);
  const path = 'ask the operator of the network whether a proxy or firewall on the path interferes with TLS';
  const trusted = `${ca} (now ${caFile ?? "the system's roots"})`;
  const today = new Date(wallNow).toISOString().slice(0, 10);
  return {
    nameServer: 'check that the name server of this machine or pod is reachable (/etc/resolv.conf, network policy)',
    name: `check the name in ${address}; a name that only the partner's network knows needs its name server`,
    listener: `nothing listens there: check host and port in ${address}, and that the service runs`,
    cut: `something between here and ${host} cuts connections: ask the operator of the network`,
    firewall: `ask the operator of the network to open ${authority} from here (firewall, network policy), or set egress.proxy (SIDECAR_EGRESS_PROXY) if a proxy is required`,
    proxy: `let the proxy allow ${authority} for this user, or add ${host} to egress.noProxy (SIDECAR_EGRESS_NO_PROXY)`,
    path,
    portOrPath: `check the port in ${address}; ${path}`,
    scheme: `check the port in ${address}; https: needs a server with TLS`,
    expiry: `if the local date ${today} is right, ask the operator of ${host} to renew it`,
    clock: `check the local clock: ${today}`,
    otherName: `use a name of the certificate in ${address}, or ask for a certificate that names ${host}`,
    selfSigned: `set ${trusted} to a file with this certificate, if the operator of the server confirms that it is theirs`,
    authority: `set ${trusted} to a file with the certificate of that authority; if that is a public one, the server does not send its intermediate certificate: tell its operator`,
    trust: `ask the operator of ${host}, and check ${ca}`,
    certificate: `set ${certificate} to the certificate that you were given, or ask the operator of the server which one it accepts`,
    certificateOrCipher: `set ${certificate} if the server requires one; otherwise ask its operator which ciphers it offers`,
    version: 'ask the operator of the server to offer TLS 1.2 or 1.3; older versions are not used',
    http1: 'ask the operator of the server for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1',
  };
};

/** The clause follows the server. Default: that of all connections */
type FaultRow = readonly [code: RegExp, advice: keyof ReturnType<typeof listAdvice>, clause?: string];

const UNKNOWN_AUTHORITY =
  /^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/;
const NOT_ACCEPTED =
  /_ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR|ACCESS_DENIED)$/;
const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE/;

/** By code; the last row is for all others. Alerts by their name (RFC 8446 §6.2): its prefix differs between versions of OpenSSL. */
const FAULTS: Readonly<Record<ConnectionStep, readonly FaultRow[]>> = {
  dns: [
    [/^ETIMEDOUT$/, 'nameServer', 'has a host name that the name server did not resolve in time'],
    [/^EAI_AGAIN$/, 'nameServer'],
    [/^/, 'name'],
  ],
  tcp: [
    [/^ECONNREFUSED$/, 'listener'],
    [/^ECONNRESET$/, 'cut'],
    [/^/, 'firewall'],
  ],
  tunnel: [[/^/, 'proxy']],
  tls: [
    [/^ETIMEDOUT$/, 'path', 'did not end the handshake in time'],
    [/^(?:ECONNRESET|EPIPE)$/, 'portOrPath'],
    [/^CERT_HAS_EXPIRED$/, 'expiry'],
    [/^CERT_NOT_YET_VALID$/, 'clock'],
    [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'otherName'],
    [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, 'selfSigned'],
    [UNKNOWN_AUTHORITY, 'authority'],
    [CERTIFICATE_CODE, 'trust', 'has a certificate that is not accepted'],
    [/_ALERT_CERTIFICATE_REQUIRED$/, 'certificate', 'requires a client certificate'],
    [NOT_ACCEPTED, 'certificate', 'does not accept the client certificate'],
    [/_ALERT_CERTIFICATE_EXPIRED$/, 'certificate', 'reports that the client certificate has expired'],
    [/_ALERT_CERTIFICATE_REVOKED$/, 'certificate', 'reports that the client certificate is revoked'],
    [/_ALERT_UNKNOWN_CA$/, 'certificate', 'does not know the authority of the client certificate'],
    [NOT_TLS, 'scheme', 'does not use TLS on this port, perhaps plain HTTP'],
    [/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION/, 'version', 'offers no TLS version of 1.2 or newer'],
    [/_ALERT_HANDSHAKE_FAILURE$/, 'certificateOrCipher', 'ended the handshake'],
    [/_ALERT_UNRECOGNIZED_NAME$/, 'name', 'does not know this host name'],
    [/_ALERT_NO_APPLICATION_PROTOCOL$/, 'http1', 'speaks only HTTP/2, which is not supported'],
    [/^/, 'path', 'did not complete the handshake'],
  ],
};

/** @param error of the connector, or of the connection that it opened */
export function explainFault(step: ConnectionStep, error: unknown, context: FaultContext) {
  const isOfProxy = error instanceof ProxyFault;
  // In an open tunnel, the only fault that the proxy is blamed for is the end of the time.
  const code = isOfProxy ? 'ETIMEDOUT' : errorCodeOf(error);
  const [, kind, clause] = FAULTS[step].find(([pattern]) => pattern.test(code)) ?? [/^/, 'path'];
  const advice = listAdvice(context)[kind];
  if (isOfProxy && step === 'tunnel') return { detail: error.message, advice };
  const text = clause ?? describeConnectionError(code, undefined, error) ?? 'cannot be reached';
  const server = formatAuthority(context.host, context.port);
  return { detail: `${server} ${text} (${code})${describeTriedAddresses(error)}`, advice };
}
