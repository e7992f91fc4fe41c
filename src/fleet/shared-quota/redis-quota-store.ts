/**
 * A board on which the replicas of a fleet share the quota of one throttle: permits, a pause, and what their leader has learned. It
 * carries reports and models as texts: what is in them is the throttle's. News are pushed over a second connection, so that a
 * pause holds everywhere at once; without that one, each exchange tells of it.
 */
import type { Subscriber } from '../redis/subscriber.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import { EXCHANGE_SCRIPT } from './quota-script.ts';
import type { QuotaListener, QuotaReply, QuotaRequest, QuotaStore, QuotaUpdate } from './quota-store.ts';
import type { ScriptReply } from '../redis/script.ts';

export interface RedisQuotaStoreOptions {
  readonly client: Pick<RedisScriptClient, 'run'>;
  readonly subscriber: Pick<Subscriber, 'subscribe'>;
  /** The key under which replicas that share this quota meet; undefined while it cannot be told. */
  readonly key: () => Promise<string | undefined>;
  /** Registers who is to hear of the connection. */
  readonly addConnectionListener: (hearer: Pick<QuotaListener, 'onConnected' | 'onDisconnected'>) => void;
}

export function createRedisQuotaStore({
  client,
  subscriber,
  key,
  addConnectionListener,
}: RedisQuotaStoreOptions): QuotaStore {
  return {
    async exchange(request) {
      const name = await key();
      const reply =
        name === undefined ? undefined : await client.run(EXCHANGE_SCRIPT, name, toScriptArguments(request));
      return reply && parseReply(reply);
    },
    listen(hearer) {
      addConnectionListener(hearer);
      void key().then((name) => {
        if (name === undefined) return;
        subscriber.subscribe(name, (message) => {
          const news = parseUpdate(message.split(' '));
          if (news !== undefined) hearer.onUpdate(news);
        });
      });
    },
  };
}

function toScriptArguments(request: QuotaRequest): (string | number)[] {
  const { id, want, activity, fixed, knownReplicas, calls, refusal, published, version } = request;
  // The script knows no Infinity: 0 is a rate that is not limited.
  const told = published && { ...published, rate: Number.isFinite(published.rate) ? published.rate : 0 };
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
    told === undefined ? '' : JSON.stringify(told),
    version,
  ];
}

/** Undefined for what is none, and for the answer to a farewell. */
export function parseReply(reply: ScriptReply): QuotaReply | undefined {
  const texts = reply.map(String);
  const [boardNow, leads, epoch, held, pausedUntil, rate, burst, present, rank, oldest, again] = texts;
  const [slots = '', mail = '', version = '', model = ''] = texts.slice(11);
  const news = parseUpdate([epoch, held, pausedUntil, rate, burst]);
  const now = Number(boardNow);
  if (news === undefined || boardNow === undefined || !Number.isFinite(now)) return undefined;
  return {
    ...news,
    storeNow: now,
    isLeader: leads === '1',
    replicaCount: Math.max(1, Number(present) || 1),
    rank: Number(rank) || 0,
    oldestReportAt: Number(oldest) || now,
    retryInMs: Number(again) || 0,
    permitTimes: slots === '' ? [] : slots.split(' ').map((ahead) => now + Number(ahead)),
    peerReports: mail,
    version: Number(version) || 0,
    model,
  };
}

function parseUpdate(texts: readonly (string | undefined)[]): QuotaUpdate | undefined {
  const [epoch, held, pausedUntil, rate, burst] = texts;
  if (burst === undefined || rate === undefined || !Number.isFinite(Number(rate))) return undefined;
  return {
    epoch: Number(epoch) || 0,
    isFleetPaused: held === '1',
    pausedUntil: Number(pausedUntil) || 0,
    rate: rate === '' ? undefined : Number(rate) > 0 ? Number(rate) : Infinity,
    burst: Math.max(1, Number(burst) || 1),
  };
}
