/** The setting that makes a status a rate-limit refusal, as text to paste, with the figures behind it (pure). */
import type { RefusalRule } from '../refusal-rule.ts';
import type { RefusalFinding } from './status-evidence.ts';

/** A status that is likely a rate limit and that no setting names. */
export interface RefusalProposal extends Omit<RefusalFinding, 'firstAt' | 'lastAt'> {
  /** Of the first and the last bare response with the status, epoch milliseconds. */
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
  const { firstAt, lastAt, ...figures } = finding;
  const rules = JSON.stringify([...configured, { status: figures.status }]);
  return {
    ...figures,
    since: wallAt(firstAt),
    lastAt: wallAt(lastAt),
    // JSON is valid in a YAML file and in a JSON one.
    setting: `throttle: { refusals: ${rules} }`,
    variable: `SIDECAR_THROTTLE_REFUSALS='${rules.replaceAll("'", "'\\''")}'`,
  };
}

/** The evidence in one sentence. */
export function describeProposal({ status, acceptedPerWindow, windowMs, windows }: RefusalProposal): string {
  if (acceptedPerWindow === 1)
    return `${status} is likely a rate limit: calls sooner than ${windowMs} ms after an accepted one were refused, among ${windows} calls`;
  return `${status} is likely a rate limit: about ${acceptedPerWindow} calls were accepted in ${windowMs / 1000} s before it, in each of ${windows} windows`;
}
