/** Checks the fleet: connects to its Redis, takes and releases a lease as a replica does, and measures replies. It leaves nothing behind. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import { redisPassword } from '../../config/schema/formats/redis-url.ts';
import { measureLatency } from '../../fleet/redis/connection-check.ts';
import { RedisFault } from '../../fleet/redis/redis-fault.ts';
import { openRedisConnection } from '../../fleet/redis/redis-connection.ts';
import { createFleetParts } from '../../composition/fleet.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { readSecret } from '../../token/client/secret-file.ts';
import { StepRunner, type StepResult, type CheckStep, type CheckContext } from './step-runner.ts';
import type { PartnerCheckContext } from './connection.ts';

type FleetConfig = NonNullable<Config['fleet']>;
type FleetCheckContext = CheckContext & Pick<PartnerCheckContext, 'secrets'>;

const CLAIM = { leaseMs: 1000, declined: undefined, isUseless: false };
const CONNECT_TIMEOUT_MS = 2000;

export async function checkFleet(config: FleetConfig, context: FleetCheckContext): Promise<readonly CheckStep[]> {
  const { secrets } = context;
  const runner = new StepRunner('Redis', context);
  const reading = await readSecret('fleet.redisUrlFile', config.redisUrl);
  if (reading.kind === 'unreadable') {
    runner.record('fleet', { outcome: 'fail', detail: reading.detail, advice: 'mount or write that file' });
    return runner.steps;
  }
  const password = redisPassword(reading.value);
  if (password !== undefined) secrets.add(password);
  await runner.run('fleet', () => joinAsReplica(config, reading.value, context, runner));
  return runner.steps;
}

const NOT_SHARED = 'every replica uses its own token and its own rate until this is fixed';

async function joinAsReplica(
  config: FleetConfig,
  url: string,
  { clock, secrets }: FleetCheckContext,
  runner: StepRunner,
): Promise<StepResult<never>> {
  const observe: EventObserver = (event) => {
    const advice = `check ${formatSettingName('fleet.redisUrl')}`;
    if (event.kind === 'warning') runner.record('fleet', { outcome: 'warn', detail: event.message, advice });
  };
  const parts = createFleetParts(config, { secrets, clock, random: Math.random, observe });
  if (parts === undefined) throw new Error('a fleet is configured');
  const { client, tokenStore } = parts;
  client.start();
  try {
    await tokenStore.whenReady();
    const [name, owner] = [`check-${randomUUID()}`, randomUUID()];
    const claim = await tokenStore.claim(name, { ...CLAIM, owner });
    const isLeased = claim?.kind === 'yours' && (await tokenStore.releaseLease(name, owner)) === true;
    const { fault = 'Redis did not respond in time' } = client.state();
    return evaluateJoin(isLeased ? undefined : fault, await measureOnce(url, config, clock), config);
  } catch (error) {
    if (error instanceof RedisFault) return createFailure(`Redis ${error.message}: ${NOT_SHARED}`);
    throw error;
  } finally {
    await parts.close();
  }
}

/** The median of a few commands, milliseconds; undefined when they were not permitted. */
async function measureOnce(url: string, { caFile, keyPrefix }: FleetConfig, clock: CheckContext['clock']) {
  const connection = await openRedisConnection({ url, caFile, timeoutMs: CONNECT_TIMEOUT_MS, clock });
  try {
    return await measureLatency(connection, keyPrefix, clock);
  } catch (error) {
    // Why commands fail is the result of the join.
    if (error instanceof RedisFault) return undefined;
    throw error;
  } finally {
    connection.destroy();
  }
}

/** @param fault undefined: a lease of the token store was taken and released */
function evaluateJoin(
  fault: string | undefined,
  latencyMs: number | undefined,
  { timeoutMs }: FleetConfig,
): StepResult<never> {
  const setting = formatSettingName('fleet.timeoutMs');
  const median = latencyMs === undefined ? '' : `the median reply takes ${latencyMs.toFixed(1)} ms`;
  if (latencyMs !== undefined && latencyMs > timeoutMs)
    return createFailure(
      `${median}, longer than the ${timeoutMs} ms of ${setting}: ${NOT_SHARED}`,
      `place Redis nearer, or set ${setting} to about twice that time`,
    );
  if (fault === undefined) return { outcome: 'ok', detail: `joined like a replica; ${median}` };
  return createFailure(`${fault}: ${NOT_SHARED}`);
}

const PERMISSIONS = `check ${formatSettingName('fleet.redisUrl')} and the permissions of its user (docs/fleet.md lists them)`;

function createFailure(detail: string, advice = PERMISSIONS): StepResult<never> {
  return { outcome: 'fail', detail, advice };
}
