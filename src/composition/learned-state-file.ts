/** Opens the state file of `throttle.stateFile` for all throttles: any of them may learn its limit, or count for declared ones. */
import { createHash } from 'node:crypto';
import type { PastSuccesses } from '../admin/history/past-successes.ts';
import { findThrottleGroups, identifyClient, type Config } from '../config/config.ts';
import type { SidecarContext } from './context.ts';
import { StateFile, type LimitOwner } from '../throttle/state-file.ts';
import type { LearnedState } from '../throttle/throttle.ts';
import { readSecret } from '../token/client/secret-file.ts';

/** The open file, and the states that it held by throttle group. */
export interface LearnedStateFile {
  readonly file: StateFile;
  readonly restored: ReadonlyMap<string, LearnedState>;
}

/** Undefined without `throttle.stateFile`. Never rejects. */
export async function openLearnedStateFile(
  config: Config,
  { clock, observe }: SidecarContext,
  successes: PastSuccesses,
): Promise<LearnedStateFile | undefined> {
  const groups = [...findThrottleGroups(config)];
  const path = groups[0]?.[1].throttle.stateFile;
  if (path === undefined) return undefined;
  const clients = new Map(
    await Promise.all(
      config.credentials.map(async (credential) => {
        const clientId = await readSecret('auth.clientId', identifyClient(credential));
        // Distinguishes clients without disclosing their ids.
        const hash = createHash('sha256').update(clientId.kind === 'read' ? clientId.value : '');
        return [credential.name, hash.digest('base64url').slice(0, 22)] as const;
      }),
    ),
  );
  const owners = new Map<string, LimitOwner>(
    groups.map(([group, { upstream, credential }]) => [
      group,
      { upstream: upstream.baseUrl.origin, client: clients.get(credential) ?? '' },
    ]),
  );
  const warn = (message: string): void => observe({ kind: 'warning', message });
  const countFailure = (): void => observe({ kind: 'state-file-not-written' });
  const file = new StateFile({ path, owners, clock, successes, warn, countFailure });
  return { file, restored: await file.restore() };
}
