/** A short stream of server-sent events (WHATWG HTML), to try streaming through the sidecar. */
import { sleep } from '../platform/clock.ts';
import type { Clock } from '../platform/clock.ts';

const EVENTS = ['received', 'priced', 'ready'] as const;
const INTERVAL_MS = 300;

/** Yields three events, 300 ms apart; ends early when `gone` is aborted. */
export async function* streamSalesEvents(clock: Clock, gone: AbortSignal): AsyncGenerator<string> {
  for (const [index, status] of EVENTS.entries()) {
    if (index > 0) await sleep(clock, INTERVAL_MS, gone);
    if (gone.aborted) return;
    const data = JSON.stringify({ status, simulated: true });
    yield `id: ${(index + 1).toString()}\nevent: quote-status\ndata: ${data}\n\n`;
  }
}
