/**
 * The effective configuration that the composition root passes to the parts: validated, complete and frozen.
 * Keys are those of the file; docs, formats, defaults and variables are in schema/.
 */

import type { RefusalRule } from '../throttle/refusal-rule.ts';
import type { ProxySelectorOptions } from '../platform/egress/proxy-selector.ts';
import type { ClientCertificateFiles } from '../platform/tls.ts';
import type { ClientAuthOptions } from '../token/client/client-authentication.ts';
import type { SecretSource } from '../token/client/secret-file.ts';
import type { TokenEndpointAddress } from '../token/endpoint/token-endpoint.ts';
import type { TokenGrantOptions } from '../token/endpoint/token-request.ts';
import type { TokenResponseForm } from '../token/endpoint/token-response.ts';

export type ListenAddressConfig =
  /** `localhost` means every loopback family of this machine (127.0.0.1 and, where present, ::1). IPv6 without brackets. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** One entry of an allow-list of Host values; no port allows any. `host` is lower case, IPv6 in brackets. */
export interface AllowedHostConfig {
  readonly host: string;
  readonly port: number | undefined;
}

/** One entry of `listen.allow`. */
export interface AllowRuleConfig {
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** A prefix of whole segments; `/` allows every path. */
  readonly path: string;
}

type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

type LogFormat = 'auto' | 'json' | 'pretty';

/** The API of one route. */
export interface UpstreamConfig {
  readonly baseUrl: URL;
  /** The header field that carries the token, and what stands before the token in it. */
  readonly tokenHeader: string;
  readonly tokenPrefix: string;
  /** Fixed header fields of every call; the values are secrets. */
  readonly headers: Readonly<Record<string, SecretSource>>;
  readonly requestTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** 0: no limit. */
  readonly maxConnectionAgeMs: number;
  /** 0: never. */
  readonly bodyIdleTimeoutMs: number;
  readonly websocket: boolean;
  readonly caFile: string | undefined;
  /** Offered to the upstream; default: that of `auth`. */
  readonly clientCertificate: ClientCertificateFiles | undefined;
}

/** How one credential obtains its tokens. */
export interface AuthConfig extends ClientAuthOptions, TokenGrantOptions, TokenResponseForm {
  /** `file`: there is no token endpoint, and another program writes the token into a file. */
  readonly endpoint: TokenEndpointAddress | { readonly kind: 'file'; readonly path: string };
  readonly timeoutMs: number;
  /** The `User-Agent` of token requests. */
  readonly userAgent: string;
  /** Default: `upstream.caFile`. */
  readonly caFile: string | undefined;
  /** Keeps the newest token across restarts. */
  readonly cacheFile: string | undefined;
  readonly invalidationCooldownMs: number;
  /** Longest wait of a call for a token that the API accepts. */
  readonly settleMs: number;
}

/** A credential whose tokens are requested, not read from a file. */
export type RequestingAuthConfig = AuthConfig & { readonly endpoint: TokenEndpointAddress };

/** The URL of the token endpoint or of the issuer; undefined for tokens in a file. */
export function authorizationServerUrl({ endpoint }: AuthConfig): URL | undefined {
  if (endpoint.kind === 'file') return undefined;
  return endpoint.kind === 'url' ? endpoint.url : new URL(endpoint.issuer);
}

/** How fast one route may call its upstream. */
export interface ThrottleConfig {
  /** Permits per second; `auto`: learned. */
  readonly rate: number | 'auto';
  /** Permits; unused with `auto`. */
  readonly burst: number;
  /** Permits per second that `auto` never exceeds. */
  readonly maxRate: number | undefined;
  /** Number of replicas that share the quota, at least 1. */
  readonly share: number;
  /** Keeps what `auto` has learned across restarts. */
  readonly stateFile: string | undefined;
  readonly maxInFlight: number;
  readonly maxStreams: number;
  readonly maxPauseMs: number;
  /** Responses that refuse a call for its rate, besides 429. */
  readonly refusals: readonly RefusalRule[];
  /** Meanings of header fields by their names, as configured. */
  readonly hints: Readonly<Record<string, string>>;
}

/** Retries of one route. `replayTotalBytes` is for all routes together. */
export interface RetryConfig {
  /** The first attempt included. */
  readonly attempts: number;
  readonly unsafeOn429: boolean;
  /** A request refused with 401 is sent once more with another token. */
  readonly on401: boolean;
  readonly trustIdempotencyKey: boolean;
  readonly replayBufferBytes: number;
  readonly replayTotalBytes: number;
}

/** One client at one authorization server. */
export interface CredentialConfig {
  /** `default`: from the top-level settings. */
  readonly name: string;
  readonly auth: AuthConfig;
}

/** One API, or a part of one, and the credential of its requests. */
export interface RouteConfig {
  /** `default`: from the top-level settings. */
  readonly name: string;
  /** Whole segments; `/` takes every path. */
  readonly pathPrefix: string;
  /** Whether the prefix is removed before the path is joined to the base URL. */
  readonly stripPrefix: boolean;
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** The name of a credential. */
  readonly credential: string;
  /** Routes of the same group share one throttle. Default: the route's own name. */
  readonly throttleGroup: string;
  readonly upstream: UpstreamConfig;
  readonly throttle: ThrottleConfig;
  readonly queue: { readonly max: number; readonly timeoutMs: number };
  readonly request: { readonly deadlineMs: number };
  readonly retry: RetryConfig;
}

export interface Config {
  /** The default route, if there is one, is the first. */
  readonly routes: readonly [RouteConfig, ...RouteConfig[]];
  /** The credentials that a route uses. */
  readonly credentials: readonly CredentialConfig[];
  readonly egress: ProxySelectorOptions;
  readonly listen: {
    readonly address: ListenAddressConfig;
    /** Permission bits of a `unix:` socket. */
    readonly socketMode: number;
    /** `name` is lower case. */
    readonly requiredHeader: { readonly name: string; readonly value: SecretSource } | undefined;
    readonly allowUnauthenticatedNetwork: boolean;
    readonly allowedHosts: readonly AllowedHostConfig[];
    /** Serialized origins (RFC 6454 §6.2), lower case. */
    readonly allowedOrigins: readonly string[];
    /** Empty allows everything. */
    readonly allow: readonly AllowRuleConfig[];
    readonly forwardProxy: boolean;
    readonly allowHalfClose: boolean;
    readonly keepAliveMs: number;
    readonly maxConnections: number;
  };
  readonly admin: {
    readonly address: ListenAddressConfig;
    readonly allowedHosts: readonly AllowedHostConfig[];
    readonly exposeAll: boolean;
    readonly allowQuit: boolean;
    readonly recentCalls: boolean;
  };
  /** The Redis that replicas share; undefined: a single process. */
  readonly fleet:
    | {
        readonly redisUrl: SecretSource;
        readonly caFile: string | undefined;
        readonly keyPrefix: string;
        /** Longest wait for the reply to one command. */
        readonly timeoutMs: number;
      }
    | undefined;
  readonly shutdown: { readonly drainMs: number; readonly delayMs: number };
  readonly response: { readonly cookies: 'adapt' | 'pass' };
  readonly log: {
    readonly format: LogFormat;
    readonly level: LogLevel;
    /** 0 to 1. */
    readonly sample: number;
    readonly slowMs: number;
  };
  /** Which buckets of its histograms `/metrics` has. */
  readonly metrics: { readonly buckets: 'default' | 'few' | 'none' };
  readonly allowInsecureHttp: boolean;
}

/** One fault of the configuration. */
export interface ConfigProblem {
  /** Dotted key, or the name of a file or argument. */
  readonly key: string;
  /** The environment variable that sets it, if any. */
  readonly variable: string | undefined;
  /** Found and expected value; never a secret. */
  readonly message: string;
}
