/**
 * The quota store over Redis. It carries reports and models as texts and does not read them. Updates are pushed over a second
 * connection, so that a pause holds everywhere at once; without that connection each exchange brings them.
 */
import type { Subscriber } from '../redis/subscriber.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import { EXCHANGE_SCRIPT } from './quota-script.ts';
import type { LimitsRequest, QuotaListener, QuotaReply, QuotaRequest, QuotaStore, QuotaUpdate } from './quota-store.ts';
import type { CountEntry } from '../../throttle/declared/counted-calls.ts';
import type { ScriptReply } from '../redis/script.ts';

/** @param key the key of this quota; undefined while it cannot be computed */
export function createRedisQuotaStore(
  client: Pick<RedisScriptClient, 'run'>,
  subscriber: Pick<Subscriber, 'subscribe'>,
  key: () => Promise<string | undefined>,
  addConnectionListener: (listener: Pick<QuotaListener, 'onConnected' | 'onDisconnected'>) => void,
): QuotaStore {
  return {
    async exchange(request) {
      const name = await key();
      const reply =
        name === undefined ? undefined : await client.run(EXCHANGE_SCRIPT, name, toScriptArguments(request));
      return reply && parseReply(reply);
    },
    listen(listener) {
      addConnectionListener(listener);
      void key().then((name) => {
        if (name === undefined) return;
        subscriber.subscribe(name, (message) => {
          const update = parseUpdate(message.split(' '));
          if (update !== undefined) listener.onUpdate(update);
        });
      });
    },
  };
}

export function toScriptArguments(request: QuotaRequest): (string | number)[] {
  const { id, want, activity, fixed, knownReplicas, calls, refusal, published, version, reportsReadUpTo, declared } =
    request;
  // JSON has no Infinity: 0 means unlimited.
  const limit = published && { ...published, rate: Number.isFinite(published.rate) ? published.rate : 0 };
  return [
    id,
    want,
    activity,
    fixed?.rate ?? '',
    fixed?.burst ?? '',
    knownReplicas,
    calls,
    refusal?.at ?? '',
    refusal?.statedWaitMs ?? '',
    limit === undefined ? '' : JSON.stringify(limit),
    version,
    request.maxPauseMs,
    request.isReturning ? 1 : 0,
    reportsReadUpTo,
    declared === undefined ? '' : encodeLimits(declared),
  ];
}

/** Undefined for a malformed reply, and for the empty reply to a replica that leaves. */
export function parseReply(reply: ScriptReply): QuotaReply | undefined {
  const texts = reply.map(String);
  const [storeNow, leads, epoch, held, pausedUntil, rate, burst, present, rank, oldest, again] = texts;
  const [
    times = '',
    reports = '',
    version = '',
    model = '',
    leaderLeft,
    tentative,
    lostAt,
    readUpTo,
    keptFrom,
    grants = '',
  ] = texts.slice(11);
  const update = parseUpdate([epoch, held, pausedUntil, rate, burst, present]);
  const now = Number(storeNow);
  if (update === undefined || storeNow === undefined || !Number.isFinite(now)) return undefined;
  return {
    ...update,
    storeNow: now,
    isLeader: leads === '1',
    replicaCount: update.replicaCount ?? 1,
    rank: Number(rank) || 0,
    oldestReportAt: Number(oldest) || now,
    reportsLostAt: Number(lostAt) || 0,
    retryInMs: Number(again) || 0,
    permitTimes: times === '' ? [] : times.split(' ').map((ahead) => now + Number(ahead)),
    reports,
    reportsReadUpTo: Number(readUpTo) || 0,
    reportsKeptFrom: Number(keptFrom) || 0,
    version: Number(version) || 0,
    model,
    isTentative: tentative === '1',
    ...parseGrants(grants),
    leaderLeftMs: leaderLeft === undefined ? Infinity : Number(leaderLeft) || 0,
  };
}

function encodeLimits({ sequence, limits, reportsKnown }: LimitsRequest): string {
  return JSON.stringify({
    sequence,
    reportsKnown,
    limits: limits.map((one) => (reportsKnown ? one : { ...one, known: [] })),
  });
}

/**
 * After the line that says when to ask again one for each limit: permits granted, permits that others hold, instants and counts, and after a
 * tab the limit's key.
 */
function parseGrants(text: string): Pick<QuotaReply, 'grants' | 'grantsRetryInMs'> {
  const [retry, ...lines] = text.split('\n');
  const grants = lines.map((line) => {
    const [numbers = '', key = ''] = line.split('\t');
    const [granted = 0, heldByOthers = 0, ...texts] = numbers
      .trim()
      .split(' ')
      .map((number) => Number(number) || 0);
    const counts: CountEntry[] = [];
    for (let index = 0; index < texts.length; index += 2) counts.push([texts[index] ?? 0, texts[index + 1] ?? 0]);
    return { key, granted, heldByOthers, counts };
  });
  return { grants: grants.length === 0 ? undefined : grants, grantsRetryInMs: Number(retry) || 0 };
}

function parseUpdate(texts: readonly (string | undefined)[]): QuotaUpdate | undefined {
  const [epoch, held, pausedUntil, rate, burst, present] = texts;
  if (burst === undefined || rate === undefined || !Number.isFinite(Number(rate))) return undefined;
  return {
    epoch: Number(epoch) || 0,
    isFleetPaused: held === '1',
    pausedUntil: Number(pausedUntil) || 0,
    rate: rate === '' ? undefined : Number(rate) > 0 ? Number(rate) : Infinity,
    burst: Math.max(1, Number(burst) || 1),
    replicaCount: present === undefined ? undefined : Math.max(1, Number(present) || 1),
  };
}
