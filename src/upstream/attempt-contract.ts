/** Inputs and results of one attempt. Types alone. */
import type { CutBy, FaultCause } from '../telemetry/events.ts';
import type { UpstreamFailure } from './failure.ts';
import type { UpstreamResponse } from './upstream-response.ts';

/** Where a response is streamed to. */
export interface ResponseSink {
  begin(head: UpstreamResponse): void;
  /** @returns false: no more until `onDrain` calls back */
  write(chunk: Buffer): boolean;
  onDrain(resume: () => void): void;
  end(): void;
  /** Drops what it was given, if none of it has been sent, so that another response can be. @returns false when it is too late */
  discardUnsent(): boolean;
  /** The response breaks off here: the client must be able to tell. */
  cut(): void;
}

/** Where a response goes: it is streamed, or kept for the result. */
export type ResponseDestination = ResponseSink | 'hold';

/** Decides from the beginning of a body where the response goes. The attempt keeps the body until then. */
export interface BodyInspector {
  /** Called first. `onDecided` is called once, also during one of the calls below or between them. */
  begin(onDecided: (destination: ResponseDestination) => void): void;
  write(chunk: Buffer): void;
  /** No more of the body comes: decides now. */
  end(): void;
  /** The attempt was ended from outside: nothing is decided. */
  cancel(): void;
}

/** Why a response was not received or not sent to its end. */
export interface ResponseCut {
  /** Fit for a log. */
  readonly detail: string;
  readonly cutBy: CutBy;
  /** Undefined when the sidecar cut it. */
  readonly cause: FaultCause | undefined;
}

/** What one attempt gave. `fault` is undefined when the response is whole. */
export type AttemptResult =
  /** The response was streamed to its sink. */
  | { readonly kind: 'relayed'; readonly head: UpstreamResponse; readonly fault: ResponseCut | undefined }
  /** The response was read and not sent anywhere. */
  | {
      readonly kind: 'held';
      readonly head: UpstreamResponse;
      readonly body: Buffer;
      readonly fault: ResponseCut | undefined;
    }
  /** No response came, or it broke off before any of it was sent to the client. */
  | { readonly kind: 'failed'; readonly failure: UpstreamFailure };

/** Settings of `upstream`. */
export interface AttemptTimeouts {
  /** From the last request byte sent to the response head, milliseconds. */
  readonly requestTimeoutMs: number;
  /** Longest silence within a body, in either direction, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
}

/** The caller of an attempt. No method may throw. */
export interface AttemptHandler {
  readonly timeouts: AttemptTimeouts;
  /** The request goes onto a connection. */
  onStart(): void;
  /**
   * Called once with the final head.
   * @param at when it came, monotonic
   * @returns where the response goes, or what decides that from its body
   */
  onHead(head: UpstreamResponse, at: number): ResponseDestination | { readonly inspector: BodyInspector };
  /** The response is too large to be held. @returns where it is streamed to */
  onBufferExceeded(head: UpstreamResponse): ResponseSink;
}
