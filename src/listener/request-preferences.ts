/**
 * What a client asks of the sidecar itself, in fields that begin with x-sidecar- and are never forwarded: how long it waits, how
 * urgent it is, and who it is. A wish that cannot be read is refused: to ignore it would be to do what nobody asked for.
 */
import type { Priority, QueueClass } from '../throttle/throttle.ts';

export type PreferencesResult =
  | {
      readonly kind: 'read';
      /** Arrival to response head, milliseconds; undefined leaves it to the configuration. */
      readonly timeoutMs: number | undefined;
      readonly queueClass: QueueClass;
    }
  /** `why` names the field and what is expected. */
  | { readonly kind: 'refused'; readonly reason: string };

/** @param fields by lower-case name; a field that is there twice has its values joined by a comma and a space */
export function readPreferences(
  fields: Readonly<Record<string, string | readonly string[] | undefined>>,
): PreferencesResult {
  const timeout = fields['x-sidecar-timeout-ms'];
  if (timeout !== undefined && !(typeof timeout === 'string' && /^[1-9]\d{0,9}$/.test(timeout)))
    return refuse('x-sidecar-timeout-ms is not a whole number of milliseconds above 0');
  const priority = parsePriority(fields['x-sidecar-priority'] ?? 'normal');
  if (priority === undefined) return refuse('x-sidecar-priority is none of high, normal and low');
  const caller = fields['x-sidecar-caller'];
  if (caller !== undefined && !(typeof caller === 'string' && /^[!-~]{1,64}$/.test(caller)))
    return refuse('x-sidecar-caller is not a name of 1 to 64 visible ASCII characters');
  return {
    kind: 'read',
    timeoutMs: timeout === undefined ? undefined : Number(timeout),
    queueClass: { priority, caller: caller ?? '' },
  };
}

function parsePriority(value: string | readonly string[]): Priority | undefined {
  const name = String(value).toLowerCase();
  return name === 'high' || name === 'normal' || name === 'low' ? name : undefined;
}

function refuse(why: string): PreferencesResult {
  return { kind: 'refused', reason: why };
}
