/** The setting that makes a status a rate-limit refusal, as text to paste, with the figures behind it (pure). */
import type { SuspectStatus } from '../../telemetry/events.ts';
import type { RefusalRule } from '../refusal-rule.ts';
import type { RefusalFinding } from './refusal-evidence.ts';

/** A status that is likely a rate limit and that no setting names. */
export interface RefusalProposal {
  readonly status: SuspectStatus;
  /** Bare responses with the status since `since`, and accepted calls to the same endpoints. */
  readonly refused: number;
  readonly accepted: number;
  /** Calls that were accepted in each window before the refusals. */
  readonly acceptedPerWindow: number;
  /** Undefined: from one recovery to the next, of no fixed length. */
  readonly windowMs: number | undefined;
  /** Windows with refusals that agree. */
  readonly windows: number;
  /** Of the windows with about as many accepted calls, the part with refusals. */
  readonly shareAtHighRate: number;
  /** Of the windows with fewer; undefined where there were too few. */
  readonly shareAtLowRate: number | undefined;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly lastAt: number;
  /** The line of the file under which `throttle` stays as it is. It contains the configured rules too, since it replaces them. */
  readonly setting: string;
  /** The same as an environment variable, quoted for a shell. */
  readonly variable: string;
}

/**
 * @param configured the rules that the setting has now
 * @param wallAt turns a monotonic instant into epoch milliseconds
 */
export function createProposal(
  finding: RefusalFinding,
  configured: readonly RefusalRule[],
  wallAt: (at: number) => number,
): RefusalProposal {
  const { status, refused, accepted, windowMs, windows, acceptedPerWindow, shareAtHighRate, shareAtLowRate } = finding;
  const rules = JSON.stringify([...configured, { status }]);
  return {
    ...{ status, refused, accepted, acceptedPerWindow, windows, shareAtHighRate, shareAtLowRate },
    windowMs: windowMs === Infinity ? undefined : windowMs,
    since: wallAt(finding.firstAt),
    lastAt: wallAt(finding.lastAt),
    // JSON is valid in a YAML file and in a JSON one.
    setting: `throttle: { refusals: ${rules} }`,
    variable: `SIDECAR_THROTTLE_REFUSALS='${rules.replaceAll("'", "'\\''")}'`,
  };
}

/** The evidence in one sentence. */
export function describeProposal(
  proposal: Pick<RefusalProposal, 'status' | 'acceptedPerWindow' | 'windows'> & {
    readonly windowMs: number | undefined;
  },
): string {
  const { status, acceptedPerWindow, windowMs, windows } = proposal;
  if (acceptedPerWindow === 1 && windowMs !== undefined)
    return `${status} is likely a rate limit: calls sooner than ${windowMs} ms after an accepted one were refused, among ${windows} calls`;
  const window = windowMs === undefined ? 'between two recoveries' : `in ${windowMs / 1000} s`;
  return `${status} is likely a rate limit: about ${acceptedPerWindow} calls were accepted ${window} before it, in each of ${windows} windows`;
}
