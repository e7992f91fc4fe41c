/**
 * The effective configuration, as the composition root hands it to the parts: checked, complete and frozen.
 * Keys are those of the file; docs, formats, defaults and variables live in schema.ts.
 */

/** A value given in place, or in a file that is read anew whenever the value is needed. */
export type ValueSource =
  { readonly kind: 'value'; readonly value: string } | { readonly kind: 'file'; readonly path: string };

export type ListenAddress =
  /** `localhost` means every loopback family of this machine (127.0.0.1 and, where present, ::1). IPv6 without brackets. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** One entry of an allow-list of Host values; no port allows any. `host` is lower case, IPv6 in brackets. */
export interface AllowedHost {
  readonly host: string;
  readonly port: number | undefined;
}

/** One entry of the list of what may be asked for. */
export interface AllowRule {
  /** Undefined allows every method. */
  readonly methods: readonly string[] | undefined;
  /** A prefix of whole segments; `/` allows every path. */
  readonly path: string;
}

type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface Config {
  readonly upstream: {
    readonly baseUrl: URL;
    readonly requestTimeoutMs: number;
    readonly connectTimeoutMs: number;
    /** 0 = no limit. */
    readonly maxConnectionAgeMs: number;
    /** 0 = never. */
    readonly bodyIdleTimeoutMs: number;
    readonly websocket: boolean;
    readonly caFile: string | undefined;
  };
  readonly auth: {
    /** `auth.url` and `auth.tokenPath` joined. */
    readonly tokenUrl: URL;
    readonly clientId: ValueSource;
    readonly clientSecret: ValueSource;
    readonly audience: string | undefined;
    readonly scope: string | undefined;
    readonly timeoutMs: number;
    /** Falls back to `upstream.caFile`. */
    readonly caFile: string | undefined;
    readonly invalidationCooldownMs: number;
  };
  readonly listen: {
    readonly address: ListenAddress;
    /** Permission bits of a `unix:` socket. */
    readonly socketMode: number;
    /** `name` is lower case. */
    readonly requiredHeader: { readonly name: string; readonly value: ValueSource } | undefined;
    readonly allowUnauthenticatedNetwork: boolean;
    readonly allowedHosts: readonly AllowedHost[];
    /** Serialized origins (RFC 6454 §6.2), lower case. */
    readonly allowedOrigins: readonly string[];
    /** Empty allows everything. */
    readonly allow: readonly AllowRule[];
    readonly allowHalfClose: boolean;
    readonly keepAliveMs: number;
    readonly maxConnections: number;
  };
  readonly admin: {
    readonly address: ListenAddress;
    readonly allowedHosts: readonly AllowedHost[];
    readonly exposeAll: boolean;
  };
  readonly throttle: {
    /** Permits per second, or `auto`: learn it. */
    readonly rate: number | 'auto';
    /** Permits; unused with `auto`. */
    readonly burst: number;
    readonly maxInFlight: number;
    readonly maxStreams: number;
    readonly maxPauseMs: number;
  };
  readonly queue: { readonly max: number; readonly timeoutMs: number };
  readonly request: { readonly deadlineMs: number };
  readonly retry: {
    /** The first attempt included. */
    readonly attempts: number;
    readonly unsafeOn429: boolean;
    readonly trustIdempotencyKey: boolean;
    readonly replayBufferBytes: number;
    readonly replayTotalBytes: number;
  };
  readonly shutdown: { readonly drainMs: number; readonly delayMs: number };
  readonly log: { readonly level: LogLevel };
  readonly allowInsecureHttp: boolean;
}

/** One thing wrong with the configuration. */
export interface ConfigProblem {
  /** Dotted key, or the name of a file or argument. */
  readonly key: string;
  /** The environment variable that sets it, if any. */
  readonly variable: string | undefined;
  /** What was found and what is expected; never a secret value. */
  readonly message: string;
}
