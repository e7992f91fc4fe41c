/** Inputs and results of one attempt. Types alone. */
import type { CutBy } from '../telemetry/events.ts';
import type { UpstreamResponse } from './upstream-response.ts';
import type { UpstreamFailure } from './failure.ts';

/** Where an answer is streamed to. */
export interface ResponseSink {
  begin(head: UpstreamResponse): void;
  /** False asks to be left alone until `onDrain` calls back. */
  write(chunk: Buffer): boolean;
  onDrain(resume: () => void): void;
  end(): void;
  /** Forgets what it was given if none of it has been sent, so that another response can be. @returns false when it is too late */
  discardUnsent(): boolean;
  /** The answer breaks off here: the client must be able to tell. */
  cut(): void;
}

/** An answer that was read, and not yet forwarded. */
export interface BufferedResponse {
  readonly head: UpstreamResponse;
  readonly body: Buffer;
  /** Why the rest of the body is missing; undefined when it is whole. */
  readonly fault: string | undefined;
}

/** Why a response that the client had begun to receive was not sent to its end. */
export interface ResponseCut {
  /** Fit for a log. */
  readonly detail: string;
  readonly cutBy: CutBy;
}

export type AttemptResult =
  | { readonly kind: 'held'; readonly response: BufferedResponse }
  /** `fault` is undefined when it is whole. */
  | { readonly kind: 'relayed'; readonly head: UpstreamResponse; readonly fault: ResponseCut | undefined }
  /** There is no response: none came, or it broke off before any of it was sent to the client. */
  | { readonly kind: 'failed'; readonly failure: UpstreamFailure };

export interface AttemptHandler {
  /** Called when the request goes onto a connection. */
  onStart(): void;
  /**
   * Called once with the final head: `hold` keeps the answer back, a target gets it streamed.
   * @param at when it came, monotonic
   */
  onHead(head: UpstreamResponse, at: number): ResponseSink | 'hold';
  /** An answer too large to hold goes here after all. */
  onBufferExceeded(head: UpstreamResponse): ResponseSink;
  /** From the last request byte sent to the response head, milliseconds. */
  readonly responseTimeoutMs: number;
  /** Longest silence within an answer's body, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
  /** Called once with how it ended, possibly before `send` has returned. Must not throw. Default: not reported. */
  onEnded?(end: AttemptResult): void;
}
