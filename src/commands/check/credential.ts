/**
 * One credential, looked at from its authorization server's name to the token: the way there, the metadata where the endpoint is
 * found by its issuer, one token request, and what the answer says. What the findings mean is judge-token's and clock-skew's.
 */
import type { CredentialConfig } from '../../config/config.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { createTokenEndpoint } from '../../token/endpoint/token-endpoint.ts';
import type { TokenEndpoint } from '../../token/endpoint/token-endpoint.ts';
import type { TokenRequestResult } from '../../token/endpoint/token-response.ts';
import { evaluateSkew } from './clock-skew.ts';
import { discoverTokenUrl } from './discover.ts';
import { evaluateTokenFailure, evaluateLifetime, evaluateScope } from './evaluate/evaluate-token.ts';
import type { TokenResponseHead, TokenCheckContext } from './evaluate/evaluate-token.ts';
import type { ProxyChecks } from './proxies.ts';
import { createSettingNamer, formatTarget } from './setting-names.ts';
import { StepRunner } from './step-runner.ts';
import type { StepResult, CheckStepName, CheckStep, CheckContext } from './step-runner.ts';
import { createTarget, checkConnectivity } from './connectivity.ts';
import type { ConnectivityTarget } from './connectivity.ts';

export interface CredentialCheckContext extends CheckContext {
  readonly egress: ProxySelector;
  readonly proxies: ProxyChecks;
  /** Hears what must not be printed. */
  readonly withhold: (secret: string) => void;
}

export interface CredentialCheckResult {
  readonly steps: readonly CheckStep[];
  /** The access token, if one was had. */
  readonly token: string | undefined;
}

const STEPS_AFTER_TOKEN: readonly CheckStepName[] = ['scope', 'lifetime', 'clock'];

export async function checkCredential(
  credential: CredentialConfig,
  check: CredentialCheckContext,
): Promise<CredentialCheckResult> {
  const { auth, name } = credential;
  const walk = new StepRunner(formatTarget('token endpoint', name), check);
  const url = await locateEndpoint(walk, credential, check);
  if (url === undefined) {
    walk.skip(['token', ...STEPS_AFTER_TOKEN], 'the token endpoint was not reached');
    return { steps: walk.steps, token: undefined };
  }
  const asked = await walk.run('token', () => requestToken(credential, url, check, walk));
  if (asked === undefined) {
    walk.skip(STEPS_AFTER_TOKEN, 'no answer to look at');
    return { steps: walk.steps, token: undefined };
  }
  const { answer, skew } = asked;
  if (answer.kind === 'ok') {
    walk.record('scope', evaluateScope(auth.scope, answer, createSettingNamer('credential', name)));
    walk.record('lifetime', evaluateLifetime(answer, check.clock.wallNow()));
  } else walk.skip(['scope', 'lifetime'], 'there is no token');
  walk.record('clock', evaluateSkew(skew, auth.method.name === 'private_key_jwt'));
  return { steps: walk.steps, token: answer.kind === 'ok' ? answer.value : undefined };
}

/** The URL of the token endpoint, when the way to it is open. */
async function locateEndpoint(
  walk: StepRunner,
  credential: CredentialConfig,
  check: CredentialCheckContext,
): Promise<URL | undefined> {
  const { endpoint } = credential.auth;
  if (endpoint.kind === 'url')
    return (await checkEndpointConnectivity(walk, endpoint.url, credential, check)) ? endpoint.url : undefined;
  const issuer = new URL(endpoint.issuer);
  if (!(await checkEndpointConnectivity(walk, issuer, credential, check))) {
    walk.skip(['discovery'], 'the issuer was not reached');
    return undefined;
  }
  const tokenUrl = await walk.run('discovery', () => discoverTokenUrl(credential, check));
  if (tokenUrl === undefined || tokenUrl.origin === issuer.origin) return tokenUrl;
  // What was found may well be another server.
  return (await checkEndpointConnectivity(walk, tokenUrl, credential, check)) ? tokenUrl : undefined;
}

function checkEndpointConnectivity(
  walk: StepRunner,
  url: URL,
  credential: CredentialConfig,
  check: CredentialCheckContext,
): Promise<boolean> {
  const proxy = check.egress(url);
  const detour = proxy && { proxy, isReached: check.proxies.isReached(proxy) };
  return checkConnectivity(walk, createEndpointTarget(url, credential), check, detour);
}

function createEndpointTarget(url: URL, { auth, name }: CredentialConfig): ConnectivityTarget {
  const nameSetting = createSettingNamer('credential', name);
  const { caFile, clientCertificate, timeoutMs } = auth;
  const isKnownByCertificate = auth.method.name === 'tls_client_auth';
  return createTarget(url, {
    trust: url.protocol === 'https:' ? () => loadTlsContext(caFile, clientCertificate) : undefined,
    clientCertificate: clientCertificate === undefined ? 'none' : isKnownByCertificate ? 'required' : 'offered',
    names: {
      address: nameSetting(auth.endpoint.kind === 'url' ? 'auth.url' : 'auth.issuer'),
      ca: nameSetting('auth.caFile'),
      certificate: nameSetting('auth.tlsCertificateFile'),
      caFile,
    },
    timeoutMs,
  });
}

interface TokenRequestOutcome {
  readonly answer: TokenRequestResult;
  readonly skew: Parameters<typeof evaluateSkew>[0];
}

async function requestToken(
  credential: CredentialConfig,
  url: URL,
  check: CredentialCheckContext,
  walk: StepRunner,
): Promise<StepResult<TokenRequestOutcome>> {
  const { clock, signal, withhold } = check;
  const heads: DatedTokenResponse[] = [];
  const endpoint = createEndpoint(credential, check, walk, (head) => heads.push(head));
  const client = await endpoint.readCredential();
  if (client.kind === 'unreadable') return { outcome: 'fail', detail: client.detail, advice: 'mend that file' };
  withhold(client.keyMaterial);
  const sentAt = clock.wallNow();
  const answer = await endpoint.request(client, signal);
  if (signal.aborted) throw signal.reason;
  const [head] = heads;
  const value: TokenRequestOutcome = {
    answer,
    skew: { date: head?.date, sentAt, receivedAt: head?.receivedAt ?? sentAt },
  };
  if (answer.kind === 'ok') {
    withhold(answer.value);
    return { outcome: 'ok', detail: `obtained from ${url.href}`, value };
  }
  const verdict = evaluateTokenFailure(answer, createTokenContext(credential, url, head));
  return head === undefined ? verdict : { ...verdict, value };
}

interface DatedTokenResponse extends TokenResponseHead {
  readonly date: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

function createEndpoint(
  { auth }: CredentialConfig,
  { egress, clock }: CredentialCheckContext,
  walk: StepRunner,
  onHead: (head: DatedTokenResponse) => void,
): TokenEndpoint {
  return createTokenEndpoint({
    ...auth,
    egress,
    clock,
    observe: (event) => {
      if (event.kind !== 'warning') return;
      walk.record('discovery', { outcome: 'warn', detail: event.message, advice: METADATA_ADVICE });
    },
    onResponseHead: ({ statusCode, headers }) => {
      const [contentType, date] = [String(headers['content-type'] ?? ''), String(headers.date ?? '')];
      onHead({ status: statusCode, contentType, date, receivedAt: clock.wallNow() });
    },
  });
}

function createTokenContext(
  { auth, name }: CredentialConfig,
  url: URL,
  head: TokenResponseHead | undefined,
): TokenCheckContext {
  return {
    url: url.href,
    nameSetting: createSettingNamer('credential', name),
    method: auth.method.name,
    isDiscovered: auth.endpoint.kind === 'issuer',
    head,
  };
}

const METADATA_ADVICE = 'compare auth.method with what the server lists, or ask whoever runs it';
