/** The short text of an alert with its value (pure). tools/dashboard/alert-rules.ts does the same for Prometheus. */
import { formatInteger, formatLatency, formatShare } from '../quantity-texts.ts';
import { ALERTS } from './alert-table.ts';
import type { AlertName } from './alert-table.ts';

/** @param value a share from 0 to 1, a number of events, or seconds */
export function formatHeadline(name: AlertName, value: number): string {
  return ALERTS[name].headline
    .replace('{share}', () => formatShare(value))
    .replace('{count}', () => formatInteger(value))
    .replace('{duration}', () => formatLatency(value * 1000));
}
