/** Decides from a request's head alone whether it may go on, and where to and how long. */
import type { IncomingMessage } from 'node:http';
import { SidecarError } from '../errors.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { Lifeline } from '../exchange/lifeline.ts';
import { joinTarget } from '../upstream/target.ts';
import type { RefuseUnlisted } from './allow-list.ts';
import { guardRequest, type GuardOptions } from './guard.ts';

export interface AdmitOptions {
  readonly parts: ExchangeParts;
  readonly guard: GuardOptions;
  readonly refuseUnlisted: RefuseUnlisted;
  /** Arrival to response head, milliseconds; a client may shorten it. */
  readonly deadlineMs: number;
}

export type Admission =
  | { readonly kind: 'refused'; readonly error: SidecarError }
  /** A CORS preflight of an allowed page: answered here. */
  | { readonly kind: 'preflight'; readonly corsOrigin: string }
  | {
      readonly kind: 'admitted';
      /** Path and query to ask of the upstream. */
      readonly path: string;
      readonly corsOrigin: string | undefined;
      readonly lifeline: Lifeline;
    };

export function admit(options: AdmitOptions, request: IncomingMessage): Admission {
  const { guard, parts, deadlineMs } = options;
  const verdict = guardRequest(guard, {
    method: request.method ?? '',
    target: request.url ?? '',
    httpVersion: request.httpVersion,
    rawFields: request.rawHeaders,
  });
  if (verdict.kind === 'refused') return verdict;
  const { corsOrigin } = verdict;
  if (verdict.isPreflight && corsOrigin !== undefined) return { kind: 'preflight', corsOrigin };
  const joined = joinTarget(parts.upstream.baseUrl.pathname, verdict.target);
  if (joined.kind === 'refused') return refuse(joined.why);
  const unlisted = options.refuseUnlisted(request.method ?? '', verdict.target);
  if (unlisted !== undefined) return { kind: 'refused', error: unlisted };
  const wish = request.headers['x-sidecar-timeout-ms'];
  if (wish !== undefined && !(typeof wish === 'string' && /^[1-9]\d{0,9}$/.test(wish))) {
    return refuse('x-sidecar-timeout-ms is not a whole number of milliseconds above 0');
  }
  const allowedMs = wish === undefined ? deadlineMs : Math.min(deadlineMs, Number(wish));
  return { kind: 'admitted', path: joined.path, corsOrigin, lifeline: new Lifeline(parts.clock, allowedMs) };
}

function refuse(why: string): Admission {
  return { kind: 'refused', error: new SidecarError('BAD_REQUEST', why) };
}
