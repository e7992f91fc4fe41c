/**
 * Asks a running sidecar of the same configuration for its proposals: statuses that are likely a rate limit. Adds nothing where none runs, or
 * another program responds.
 */
import type { Config } from '../../config/config.ts';
import { toConnectTarget } from '../admin-address.ts';
import { get } from '../../platform/http.ts';
import { StepRunner, type CheckContext, type CheckStep } from './step-runner.ts';

const RESPONSE_TIMEOUT_MS = 1000;
const MAX_RESPONSE_LENGTH = 1_000_000;

/** The part of /status that is read. */
interface ProposalStatus {
  readonly evidence: string;
  readonly refused: number;
  readonly accepted: number;
  readonly setting: string;
  readonly variable: string;
}

/** One step for each proposal. Never rejects. */
export async function checkRunningSidecar({ admin }: Config, context: CheckContext): Promise<readonly CheckStep[]> {
  const text = await requestStatus(
    admin.address,
    AbortSignal.any([context.signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]),
  );
  const runner = new StepRunner('running sidecar', context);
  for (const { evidence, refused, accepted, setting, variable } of text === undefined ? [] : readProposals(text))
    runner.record('refusals', {
      outcome: 'warn',
      detail: `${evidence} (${refused} refused, ${accepted} accepted)`,
      advice: `if so, set ${setting} or ${variable}`,
    });
  return runner.steps;
}

/** Exported for its tests. @param text what responded to `GET /status`, which may be another program */
export function readProposals(text: string): readonly ProposalStatus[] {
  try {
    const { throttles } = JSON.parse(text) as { throttles?: unknown };
    if (!Array.isArray(throttles)) return [];
    return throttles.flatMap((throttle: { refusalProposals?: unknown } | null) => {
      const proposals: unknown = throttle?.refusalProposals;
      return Array.isArray(proposals) ? proposals.filter(isProposal) : [];
    });
  } catch {
    return [];
  }
}

function isProposal(value: unknown): value is ProposalStatus {
  if (typeof value !== 'object' || value === null) return false;
  const { evidence, refused, accepted, setting, variable } = value as Record<string, unknown>;
  const texts = [evidence, setting, variable].every((member) => typeof member === 'string');
  return texts && [refused, accepted].every((member) => typeof member === 'number');
}

/** Undefined without a whole response. */
function requestStatus(address: Config['admin']['address'], until: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { ...toConnectTarget(address), path: '/status', signal: until, headers: { host: '127.0.0.1' } };
    const request = get(options, (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > MAX_RESPONSE_LENGTH) request.destroy();
      });
      response.on('end', () => resolve(response.statusCode === 200 ? text : undefined));
    });
    request.on('error', () => undefined);
    request.on('close', () => resolve(undefined));
  });
}
