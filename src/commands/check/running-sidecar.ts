/** Asks a running sidecar of the same configuration for its verdict and for what it assumes. Adds nothing where another program responds, or none. */
import type { Config } from '../../config/config.ts';
import { requestAdminPort } from '../admin-port.ts';
import { isJsonObject, parseJsonObject, type JsonFields } from '../../token/endpoint/json-object.ts';
import type { Status } from '../../admin/status/status.ts';
import { StepRunner, type CheckContext, type CheckStep } from './step-runner.ts';

const RESPONSE_TIMEOUT_MS = 1000;

type AssumedStatus = Status['throttle']['assumed'][number];

/** One step for the verdict, and one for each assumed refusal. Never rejects. */
export async function checkRunningSidecar(
  { admin, credentials }: Config,
  context: CheckContext,
): Promise<readonly CheckStep[]> {
  const until = AbortSignal.any([context.signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
  const { status, text } = await requestAdminPort(admin.address, '/status', until);
  const runner = new StepRunner('running sidecar', context);
  const found = status === 200 ? parseJsonObject(text) : undefined;
  if (found === undefined) return [];
  // Undefined of another program, or of an older version.
  const { verdict } = found;
  if (isVerdict(verdict))
    runner.record('verdict', {
      outcome: verdict.where === 'none' ? 'ok' : 'warn',
      detail: `${verdict.headline}. ${verdict.detail}`,
      advice: verdict.advice?.replaceAll('`', ''),
    });
  const holdsToken =
    Array.isArray(found.tokens) &&
    found.tokens.some((token) => isJsonObject(token) && Number(token.validForSeconds) > 0);
  if (holdsToken && credentials.some(({ auth }) => auth.endpoint.kind !== 'file'))
    runner.record('token', {
      outcome: 'warn',
      detail: 'it holds a token, which ends with the next token request where the server keeps one for each client',
      advice:
        'interrupt the check if no call may be refused now; otherwise nothing is needed, since the sidecar requests another',
    });
  for (const { status: refused, count, setting, variable } of readAssumed(found))
    runner.record('refusals', {
      outcome: 'warn',
      detail: `${refused} is taken for a rate limit, and calls are paced (${count} refused)`,
      advice: `if it is one, set ${setting} or ${variable}`,
    });
  return runner.steps;
}

/** Exported for its tests. @param status what responded to `GET /status`, which may be another program */
export function readAssumed({ throttles }: JsonFields): readonly AssumedStatus[] {
  if (!Array.isArray(throttles)) return [];
  return throttles.flatMap((throttle: { assumed?: unknown } | null) => {
    const assumed: unknown = throttle?.assumed;
    return Array.isArray(assumed) ? assumed.filter(isAssumed) : [];
  });
}

function isAssumed(value: unknown): value is AssumedStatus {
  return hasMembers(value, 'string', ['setting', 'variable']) && hasMembers(value, 'number', ['status', 'count']);
}

function isVerdict(value: unknown): value is Pick<Status['verdict'], 'where' | 'headline' | 'detail' | 'advice'> {
  const hasTexts = hasMembers(value, 'string', ['where', 'headline', 'detail']);
  return hasTexts && (hasMembers(value, 'string', ['advice']) || (value as Status['verdict']).advice === null);
}

function hasMembers(value: unknown, type: 'string' | 'number', names: readonly string[]): boolean {
  return isJsonObject(value) && names.every((name) => typeof value[name] === type);
}
