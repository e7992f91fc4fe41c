/** Joins the parts that bring the tokens of one credential: the endpoint, what is read for it, and the source that holds the token. */
import type { Clock, Random } from '../platform/clock.ts';
import type { AuthConfig } from '../config/config.ts';
import type { ProxySelector } from '../platform/egress/proxy-selector.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { ClientCredential, ClientCredentialReadResult } from '../token/client/client-authentication.ts';
import { createRotatingTokenFetcher } from '../token/client/rotating-token-fetcher.ts';
import type { TokenFetcher } from '../token/source/token-fetcher.ts';
import { withTokenCache } from '../token/store/token-cache.ts';
import { shareTokenRequests } from '../token/store/shared-tokens.ts';
import type { SharedTokenRequest } from '../token/store/shared-tokens.ts';
import type { SharedTokenStore } from '../token/store/shared-token-store.ts';
import { createTokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import type { TokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import { createTokenSource } from '../token/source/token-source.ts';
import type { TokenSource } from '../token/token.ts';

export interface TokensOptions {
  /** Label of the events. */
  readonly credential: string;
  readonly auth: AuthConfig;
  readonly egress: ProxySelector;
  /** Where replicas share their tokens; undefined: this process is alone. */
  readonly tokenStore: SharedTokenStore | undefined;
  /** Hears each client secret that is read, the first time and when it has changed. */
  readonly redactValue: RedactValue;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

/** Takes note of a secret that must be shown nowhere. */
export type RedactValue = (secret: string, clientId: string) => void;

export function createTokens(options: TokensOptions): TokenSource {
  const { credential, auth, egress, tokenStore, clock, random, observe } = options;
  const endpoint = createTokenEndpoint({ ...auth, egress, clock, observe });
  const asked = createRotatingTokenFetcher({
    credential,
    read: readAndRedact(endpoint, options.redactValue),
    request:
      tokenStore === undefined
        ? (client, signal) => endpoint.request(client, signal)
        : shareBetweenReplicas(tokenStore, endpoint, options),
    canChange: endpoint.canChange,
    clock,
    observe,
  });
  const supply =
    auth.cacheFile === undefined ? asked : cacheInFile(auth.cacheFile, asked, endpoint, { clock, observe });
  const { invalidationCooldownMs, scope } = auth;
  return createTokenSource({ credential, scope, fetcher: supply, invalidationCooldownMs, clock, random, observe });
}

function readAndRedact(endpoint: TokenEndpoint, withhold: RedactValue): () => Promise<ClientCredentialReadResult> {
  let known: string | undefined;
  return async () => {
    const client = await endpoint.readCredential();
    if (client.kind === 'unreadable' || client.version === known) return client;
    known = client.version;
    // A key is never written as it is registered here, and is too long to be looked for in every line.
    if (client.method === 'client_secret_basic' || client.method === 'client_secret_post')
      withhold(client.keyMaterial, client.clientId);
    return client;
  };
}

/** Beneath the choice of credentials: replicas that use the same ones meet, whichever those are. */
function shareBetweenReplicas(
  board: SharedTokenStore,
  endpoint: TokenEndpoint,
  { auth, clock, random, observe }: TokensOptions,
): SharedTokenRequest<ClientCredential> {
  return shareTokenRequests<ClientCredential>({
    store: board,
    sendRequest: (client, signal) => endpoint.request(client, signal),
    identify: (client) => ({ binding: endpoint.binding(client), keyMaterial: client.keyMaterial }),
    peerWaitMs: auth.timeoutMs,
    clock,
    random,
    observe,
  });
}

function cacheInFile(
  path: string,
  supply: TokenFetcher,
  endpoint: TokenEndpoint,
  { clock, observe }: Pick<TokensOptions, 'clock' | 'observe'>,
): TokenFetcher {
  const readSeal = async () => {
    const client = await endpoint.readCredential();
    if (client.kind === 'unreadable') return undefined;
    return { binding: endpoint.binding(client), keyMaterial: client.keyMaterial };
  };
  return withTokenCache(supply, { path, readSealInputs: readSeal, clock, observe });
}
