/** A throttle with learned lanes, and the moves that lead to one: `POST /policies` has a limit of its own, `GET /quotes` has none. */
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import type { LaneState, LearnedState, PermitReport, QueueClass } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, type Asking, Fixture, rateLimited, type Settings } from '../fixture.ts';

export const POST: ReceivedCall = { method: 'POST', target: '/policies' };
export const GET: ReceivedCall = { method: 'GET', target: '/quotes' };
export const PUT: ReceivedCall = { method: 'PUT', target: '/claims' };

const LEARNED: LearnedState = {
  version: 1,
  wallAt: Date.UTC(2026, 10, 1),
  governor: undefined,
  lanes: [{ operation: 'POST /policies', governor: {} }],
};

/** So slow that a limit for all brings no permit between a refused call and its witness. */
const QUIET_MS = 1000;

export class LaneWorld extends Fixture {
  /** @param settings without `restored`, an earlier process has learned of the lane: the next closure confirms it */
  constructor(settings: Settings = {}) {
    super({ restored: LEARNED, ...settings, lanes: true });
  }

  get lanes(): readonly LaneState[] {
    return this.throttle.state().lanes ?? [];
  }

  /** Asks for a permit; it has it, or waits, when this resolves. */
  async asks(call: ReceivedCall, withinMs?: number, queueClass?: QueueClass): Promise<Asking> {
    const asking = this.ask(withinMs, queueClass, call);
    await this.clock.advance(0);
    return asking;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }

  /** A call with its response at once. */
  async responds(call: ReceivedCall, report: PermitReport): Promise<Asking> {
    const asking = await this.asks(call);
    finish(asking, report);
    await this.clock.advance(0);
    return asking;
  }

  /** Both operations are known as accepted. */
  async warmUp(): Promise<void> {
    for (let count = 0; count < 3; count++) {
      for (const call of [POST, GET, PUT]) await this.responds(call, ACCEPTED);
      await this.clock.advance(QUIET_MS);
    }
  }

  /** A POST is refused, and a GET after it accepted. @param retryAfter seconds. Default: the refusal states no wait */
  async refuseOnce(retryAfter?: string): Promise<void> {
    const asking = await this.asks(POST);
    await this.refuseFirst(asking, retryAfter);
    asking.ticket.leave();
  }

  /** As `refuseOnce`, for a POST that was granted and stays. */
  async refuseFirst(asking: Asking, retryAfter?: string): Promise<void> {
    finish(asking, rateLimited(retryAfter));
    await this.clock.advance(20);
    await this.responds(GET, ACCEPTED);
  }

  /** A confirmed lane that is paused. @param retryAfter as `refuseOnce` */
  async close(retryAfter?: string): Promise<void> {
    await this.warmUp();
    await this.refuseOnce(retryAfter);
    if (this.lanes[0]?.isConfirmed !== true) throw new Error('The lane was not confirmed.');
  }
}

/** Nothing while it waits. */
export function finish({ permit, ticket }: Asking, report: PermitReport): void {
  if (permit === undefined) return;
  permit.markSent();
  permit.report(report);
  permit.release();
  if (report.kind === 'accepted') ticket.leave();
}
