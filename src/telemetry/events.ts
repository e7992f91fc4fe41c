/**
 * What the parts tell the outside: one closed union of events, spoken by everyone, heard by metrics and log.
 * Parts never import a metrics or logging library. No event holds a token, a secret or a query string.
 */
import type { LocalReplyCode } from '../platform/errors.ts';

export type AttemptOutcome =
  | 'ok'
  | 'rate_limited'
  | 'unauthorized'
  | 'error_status'
  /** The response broke off after its head. */
  | 'cut'
  | 'client_left'
  /** No response: the connection broke, or what came was not HTTP. */
  | 'reset'
  | 'timeout'
  | 'unreachable';
/** Who broke a response off that the client had begun to receive: `upstream` also when it fell silent or sent what is not HTTP. */
export type CutBy = 'upstream' | 'sidecar';
export type RetryReason = 'rate_limited' | 'unauthorized' | 'status' | 'reset' | 'connect';
export type QueueRejectionReason = 'full' | 'timeout' | 'expected_wait' | 'draining' | 'client_left';
export type FleetCommandOutcome = 'ok' | 'timeout' | 'error';
export type ReloadOutcome = 'ok' | 'refused' | 'invalid';
export type TokenOutcome = 'ok' | 'rejected' | 'unavailable' | 'malformed';

/** One request of a client, told once when it has ended. */
export interface RequestEnded {
  readonly kind: 'request-ended';
  readonly route: string;
  /** As the client sent it; a label maker folds unknown ones into `other`. */
  readonly method: string;
  /** Path without its query. */
  readonly path: string;
  /** As sent; 499 when the client left before the answer had ended. */
  readonly code: number;
  readonly source: 'upstream' | 'sidecar';
  /** Set when the sidecar answered for itself. */
  readonly localReply?: LocalReplyCode | undefined;
  readonly durationMs: number;
  /** Time in the queue, all waits together. */
  readonly queuedMs: number;
  /** Attempts sent to the upstream. */
  readonly attempts: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Set when the client has received the beginning of a response and not its end, and had not left. */
  readonly cutBy?: CutBy | undefined;
  /** Why an answer that had begun was cut short, or an attempt failed. */
  readonly fault?: string | undefined;
  /** The trace that it belongs to, if that is known: 32 hexadecimal digits. */
  readonly traceId?: string | undefined;
}

export type SidecarEvent =
  | RequestEnded
  | { readonly kind: 'local-reply'; readonly code: LocalReplyCode }
  | {
      readonly kind: 'attempt-ended';
      readonly route: string;
      readonly outcome: AttemptOutcome;
      /** To the response's head, or to the end of an attempt that brought none. */
      readonly durationMs: number;
      /** True when the sidecar ended it itself, for a client that left or the drain, or could not send it at all. Default false. */
      readonly isOwn?: boolean;
    }
  | { readonly kind: 'retry'; readonly route: string; readonly reason: RetryReason }
  | { readonly kind: 'retry-budget-exhausted'; readonly route: string; readonly reason: RetryReason }
  | {
      readonly kind: 'rate-limited';
      readonly route: string;
      readonly status: number;
      /** How long new attempts are held back, milliseconds. */
      readonly pauseMs: number;
      /** True when the upstream stated the wait itself. */
      readonly stated: boolean;
      /** The rate-limit fields as received (Retry-After, RateLimit*, X-RateLimit-*). */
      readonly fields: Readonly<Record<string, string>>;
    }
  | {
      /** An upstream stated its limits in a way not seen before. */
      readonly kind: 'rate-limit-shape';
      readonly route: string;
      /** `failed`: an answer of a server in trouble, which is not taken for a refusal. */
      readonly on: 'refused' | 'accepted' | 'failed';
      readonly status: number;
      /** Which fields, and the form of their values. */
      readonly shape: string;
      /** The fields as received, cut. */
      readonly fields: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'permit-granted'; readonly route: string; readonly waitedMs: number }
  | { readonly kind: 'queue-rejected'; readonly route: string; readonly reason: QueueRejectionReason }
  | {
      readonly kind: 'token-requested';
      readonly credential: string;
      readonly outcome: TokenOutcome;
      readonly durationMs: number;
      /** What went wrong, in words fit for a log: never the token, the secret or a raw body. */
      readonly detail?: string;
      /** Lifetime of the token obtained, milliseconds. */
      readonly lifetimeMs?: number;
      /** When the next request is due, milliseconds from now. */
      readonly nextInMs?: number;
    }
  | { readonly kind: 'token-invalidated'; readonly credential: string; readonly reason: 'unauthorized' | 'rotated' }
  | {
      /** A token that had been asked for before is taken: no request was made. */
      readonly kind: 'token-found';
      readonly credential: string;
      readonly from: string;
      /** What is left of its life, milliseconds. */
      readonly validForMs: number;
    }
  | { readonly kind: 'token-circuit'; readonly credential: string; readonly phase: 'open' | 'closed' }
  | {
      /** Told when it changes; empty once all that was asked for is granted again. */
      readonly kind: 'token-scopes-missing';
      readonly credential: string;
      readonly missing: readonly string[];
    }
  | {
      readonly kind: 'credential-rotation';
      readonly credential: string;
      /** `refused`, `unreadable`: the older credentials stay in use. */
      readonly outcome: 'taken' | 'refused' | 'unreadable';
      readonly detail?: string;
    }
  | {
      /** The upstream refused a request for want of a scope (RFC 6750 §3.1). */
      readonly kind: 'insufficient-scope';
      readonly route: string;
      /** What it says is needed; undefined when it does not. */
      readonly needed: string | undefined;
    }
  | {
      /** Somebody else has just asked, in vain: no request was made. */
      readonly kind: 'token-not-asked';
      readonly credential: string;
      readonly from: string;
      readonly outcome: Exclude<TokenOutcome, 'ok'>;
      readonly detail: string;
      /** When the next request is due, milliseconds from now. */
      readonly nextInMs?: number;
    }
  | { readonly kind: 'fleet-joined' }
  | { readonly kind: 'fleet-lost'; readonly detail: string }
  | { readonly kind: 'fleet-command'; readonly outcome: FleetCommandOutcome }
  | {
      /** The configuration was read again, and taken over as a whole or not at all. */
      readonly kind: 'configuration-read';
      readonly outcome: ReloadOutcome;
      /** What has changed, which keys only a restart takes over, or what is wrong: never a secret. */
      readonly lines: readonly string[];
    }
  | { readonly kind: 'authorization-overridden' }
  | { readonly kind: 'listening'; readonly server: 'proxy' | 'admin'; readonly url: string }
  | { readonly kind: 'draining'; readonly inFlight: number; readonly queued: number; readonly drainMs: number }
  | { readonly kind: 'stopped'; readonly cut: number }
  | { readonly kind: 'warning'; readonly message: string };

/** Hears events. Must not throw and must not block. */
export type EventObserver = (event: SidecarEvent) => void;

/** What keeps log lines from their destination at the moment. */
export interface LogDeliveryProblem {
  /** Node's code of the last refusal; undefined: nothing is refused, the reader is too slow. */
  readonly code: string | undefined;
  /** Lines dropped since the last notice. */
  readonly lostLines: number;
}
