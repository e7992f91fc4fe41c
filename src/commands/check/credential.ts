/**
 * One credential, looked at from its authorization server's name to the token: the way there, the metadata where the endpoint is
 * found by its issuer, one token request, and what the answer says. What the findings mean is judge-token's and clock-skew's.
 */
import type { CredentialConfig } from '../../config/config.ts';
import type { Egress } from '../../platform/egress/egress.ts';
import { trustContext } from '../../platform/tls.ts';
import { createTokenEndpoint } from '../../token/endpoint/token-endpoint.ts';
import type { TokenEndpoint } from '../../token/endpoint/token-endpoint.ts';
import type { TokenAnswer } from '../../token/endpoint/token-answer.ts';
import { judgeSkew } from './clock-skew.ts';
import { discover } from './discover.ts';
import { judgeFailure, judgeLifetime, judgeScope } from './evaluate/judge-token.ts';
import type { AnswerHead, TokenTerms } from './evaluate/judge-token.ts';
import type { Proxies } from './proxies.ts';
import { namesWithin, targetOf } from './setting-names.ts';
import { Walk } from './walk.ts';
import type { Finding, StepName, Step, Surroundings } from './walk.ts';
import { destinationOf, walkTo } from './way.ts';
import type { Destination } from './way.ts';

export interface CredentialCheck extends Surroundings {
  readonly egress: Egress;
  readonly proxies: Proxies;
  /** Hears what must not be printed. */
  readonly withhold: (secret: string) => void;
}

export interface CheckedCredential {
  readonly steps: readonly Step[];
  /** The access token, if one was had. */
  readonly token: string | undefined;
}

const BEHIND_TOKEN: readonly StepName[] = ['scope', 'lifetime', 'clock'];

export async function checkCredential(
  credential: CredentialConfig,
  check: CredentialCheck,
): Promise<CheckedCredential> {
  const { auth, name } = credential;
  const walk = new Walk(targetOf('token endpoint', name), check);
  const url = await findEndpoint(walk, credential, check);
  if (url === undefined) {
    walk.skip(['token', ...BEHIND_TOKEN], 'the token endpoint was not reached');
    return { steps: walk.steps, token: undefined };
  }
  const asked = await walk.take('token', () => askForToken(credential, url, check, walk));
  if (asked === undefined) {
    walk.skip(BEHIND_TOKEN, 'no answer to look at');
    return { steps: walk.steps, token: undefined };
  }
  const { answer, skew } = asked;
  if (answer.kind === 'ok') {
    walk.note('scope', judgeScope(auth.scope, answer, namesWithin('credential', name)));
    walk.note('lifetime', judgeLifetime(answer, check.clock.wallNow()));
  } else walk.skip(['scope', 'lifetime'], 'there is no token');
  walk.note('clock', judgeSkew(skew, auth.method.name === 'private_key_jwt'));
  return { steps: walk.steps, token: answer.kind === 'ok' ? answer.value : undefined };
}

/** The URL of the token endpoint, when the way to it is open. */
async function findEndpoint(
  walk: Walk,
  credential: CredentialConfig,
  check: CredentialCheck,
): Promise<URL | undefined> {
  const { endpoint } = credential.auth;
  if (endpoint.kind === 'url') return (await reach(walk, endpoint.url, credential, check)) ? endpoint.url : undefined;
  const issuer = new URL(endpoint.issuer);
  if (!(await reach(walk, issuer, credential, check))) {
    walk.skip(['discovery'], 'the issuer was not reached');
    return undefined;
  }
  const tokenUrl = await walk.take('discovery', () => discover(credential, check));
  if (tokenUrl === undefined || tokenUrl.origin === issuer.origin) return tokenUrl;
  // What was found may well be another server.
  return (await reach(walk, tokenUrl, credential, check)) ? tokenUrl : undefined;
}

function reach(walk: Walk, url: URL, credential: CredentialConfig, check: CredentialCheck): Promise<boolean> {
  const proxy = check.egress(url);
  const detour = proxy && { proxy, isReached: check.proxies.isReached(proxy) };
  return walkTo(walk, destinationTo(url, credential), check, detour);
}

function destinationTo(url: URL, { auth, name }: CredentialConfig): Destination {
  const nameSetting = namesWithin('credential', name);
  const { caFile, clientCertificate, timeoutMs } = auth;
  const isKnownByCertificate = auth.method.name === 'tls_client_auth';
  return destinationOf(url, {
    trust: url.protocol === 'https:' ? () => trustContext(caFile, clientCertificate) : undefined,
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

interface Asked {
  readonly answer: TokenAnswer;
  readonly skew: Parameters<typeof judgeSkew>[0];
}

async function askForToken(
  credential: CredentialConfig,
  url: URL,
  check: CredentialCheck,
  walk: Walk,
): Promise<Finding<Asked>> {
  const { clock, signal, withhold } = check;
  const heads: DatedHead[] = [];
  const endpoint = endpointOf(credential, check, walk, (head) => heads.push(head));
  const client = await endpoint.read();
  if (client.kind === 'unreadable') return { outcome: 'fail', detail: client.detail, advice: 'mend that file' };
  withhold(client.keyMaterial);
  const sentAt = clock.wallNow();
  const answer = await endpoint.request(client, signal);
  if (signal.aborted) throw signal.reason;
  const [head] = heads;
  const value: Asked = { answer, skew: { date: head?.date, sentAt, receivedAt: head?.receivedAt ?? sentAt } };
  if (answer.kind === 'ok') {
    withhold(answer.value);
    return { outcome: 'ok', detail: `obtained from ${url.href}`, value };
  }
  const verdict = judgeFailure(answer, termsOf(credential, url, head));
  return head === undefined ? verdict : { ...verdict, value };
}

interface DatedHead extends AnswerHead {
  readonly date: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

function endpointOf(
  { auth }: CredentialConfig,
  { egress, clock }: CredentialCheck,
  walk: Walk,
  onHead: (head: DatedHead) => void,
): TokenEndpoint {
  return createTokenEndpoint({
    ...auth,
    egress,
    clock,
    observe: (event) => {
      if (event.kind !== 'warning') return;
      walk.note('discovery', { outcome: 'warn', detail: event.message, advice: CHECK_METADATA });
    },
    onHead: ({ statusCode, headers }) => {
      const [contentType, date] = [String(headers['content-type'] ?? ''), String(headers.date ?? '')];
      onHead({ status: statusCode, contentType, date, receivedAt: clock.wallNow() });
    },
  });
}

function termsOf({ auth, name }: CredentialConfig, url: URL, head: AnswerHead | undefined): TokenTerms {
  return {
    url: url.href,
    nameSetting: namesWithin('credential', name),
    method: auth.method.name,
    isDiscovered: auth.endpoint.kind === 'issuer',
    head,
  };
}

const CHECK_METADATA = 'compare auth.method with what the server lists, or ask whoever runs it';
