/**
 * The part of `check` that looks at the fleet: the way to its Redis, and then it joins as a replica would and does there what a
 * replica does, so that missing rights show. It leaves nothing behind.
 */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { nameOf } from '../../config/load/problems.ts';
import { redisPassword } from '../../config/schema/formats/redis-url.ts';
import { RedisFault } from '../../fleet/fault.ts';
import { openLink } from '../../fleet/link.ts';
import { rehearseQuota } from '../../fleet/rehearsal.ts';
import { createFleetParts } from '../../sidecar/fleet.ts';
import type { Observe } from '../../telemetry/events.ts';
import { trustContext } from '../../platform/tls.ts';
import { readSecret } from '../../token/client/secret-file.ts';
import { Walk } from './walk.ts';
import type { Finding, Step, Surroundings } from './walk.ts';
import { walkTo } from './way.ts';
import type { Destination } from './way.ts';

type FleetConfig = NonNullable<Config['fleet']>;

const CLAIM = { leaseMs: 1000, unwanted: undefined, isRefused: false, leastShare: 0.1 };
const CONNECT_TIMEOUT_MS = 2000;
const DEFAULT_PORT = 6379;

/** @param withhold hears what must not be printed */
export async function checkFleet(
  config: FleetConfig,
  surroundings: Surroundings,
  withhold: (secret: string) => void,
): Promise<readonly Step[]> {
  const walk = new Walk('Redis', surroundings);
  const reading = await readSecret('fleet.redisUrlFile', config.redisUrl);
  if (reading.kind === 'unreadable') {
    walk.note('fleet', { outcome: 'fail', detail: reading.detail, advice: 'mount or write that file' });
    return walk.steps;
  }
  const password = redisPassword(reading.value);
  if (password !== undefined) withhold(password);
  const destination = destinationTo(reading.value, config);
  const isReached = destination === undefined || (await walkTo(walk, destination, surroundings));
  if (isReached) await walk.take('fleet', () => join(config, reading.value, surroundings, walk));
  else walk.skip(['fleet'], `Redis was not reached: ${ALONE}`);
  return walk.steps;
}

const ALONE = 'every replica asks for a token of its own, and keeps to a rate of its own, until this is mended';

/** Undefined for a socket file, to which there is no way to look at. */
function destinationTo(url: string, { caFile }: FleetConfig): Destination | undefined {
  if (/^unix:/i.test(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || DEFAULT_PORT),
    trust: protocol === 'rediss:' ? () => trustContext(caFile) : undefined,
    isHttp: false,
    clientCertificate: 'none',
    names: {
      address: nameOf('fleet.redisUrl'),
      ca: nameOf('fleet.caFile'),
      certificate: 'none: Redis is shown no certificate',
      caFile,
    },
    timeoutMs: CONNECT_TIMEOUT_MS,
  };
}

/** What joining found out. */
interface Trial {
  /** A lease of the token board was had and given back. */
  readonly isLeased: boolean;
  /** Commands that are refused to who shares a quota; undefined when that could not be found out. */
  readonly refused: readonly string[] | undefined;
  readonly fault: string | undefined;
}

async function join(config: FleetConfig, url: string, { clock }: Surroundings, walk: Walk): Promise<Finding<never>> {
  const observe: Observe = (event) => {
    const advice = `see ${nameOf('fleet.redisUrl')}`;
    if (event.kind === 'warning') walk.note('fleet', { outcome: 'warn', detail: event.message, advice });
  };
  const parts = createFleetParts(config, { clock, random: Math.random, observe });
  if (parts === undefined) throw new Error('a fleet is configured');
  const { fleet, tokenBoard } = parts;
  fleet.start();
  try {
    await tokenBoard.whenReady();
    const [name, owner] = [`check-${randomUUID()}`, randomUUID()];
    const claim = await tokenBoard.claim(name, { ...CLAIM, owner });
    const isLeased = claim?.kind === 'yours' && (await tokenBoard.release(name, owner)) === true;
    const first = fleet.state().fault;
    const { caFile, keyPrefix } = config;
    const open = () => openLink({ url, caFile, timeoutMs: CONNECT_TIMEOUT_MS, clock });
    const refused = await rehearseQuota({ fleet, open, key: `${keyPrefix}:quota:${name}` });
    return judge({ isLeased, refused, fault: first ?? fleet.state().fault }, keyPrefix);
  } catch (error) {
    if (error instanceof RedisFault) return fault(`Redis ${error.message}: ${ALONE}`);
    throw error;
  } finally {
    await fleet.close();
  }
}

function judge({ isLeased, refused, fault: why }: Trial, keyPrefix: string): Finding<never> {
  if (isLeased && refused?.length === 0) return { outcome: 'ok', detail: 'joined as a replica would' };
  const missing =
    refused === undefined || refused.length === 0 ? '' : `refused with ${keyPrefix}:*: ${refused.join(', ')}`;
  if (isLeased && refused?.join() === 'SUBSCRIBE') {
    const detail = `${missing}: pauses of other replicas are heard of with the next exchange only`;
    return { ...fault(detail), outcome: 'warn' };
  }
  const said = [why, missing].filter((text) => text !== undefined && text !== '').join('; ');
  return fault(`${said === '' ? 'Redis did not answer in time' : said}: ${ALONE}`);
}

function fault(detail: string): Finding<never> {
  return { outcome: 'fail', detail, advice: `check ${nameOf('fleet.redisUrl')} and the rights of its user` };
}
