/**
 * A board on which the replicas of a fleet share the quota of one throttle: permits, a pause, and what their leader has learned. It
 * carries reports and models as texts: what is in them is the throttle's. News are pushed over a second connection, so that a
 * pause holds everywhere at once; without that one, each exchange tells of it.
 */
import type { Ear } from './ear.ts';
import type { Fleet } from './fleet.ts';
import { EXCHANGE } from './quota-script.ts';
import type { Reply } from './script.ts';

/** What an exchange is asked with, and what it answers, as the throttle has them. Instants are the server's, milliseconds. */
interface QuotaRequest {
  readonly id: string;
  readonly want: number;
  readonly activity: 'active' | 'idle' | 'leaving';
  readonly fixed: { readonly rate: number; readonly burst: number } | undefined;
  readonly size: number;
  readonly calls: string;
  readonly refusal: { readonly at: number; readonly statedWaitMs: number | undefined } | undefined;
  readonly published:
    | {
        readonly rate: number;
        readonly burst: number;
        readonly openAt: number;
        readonly epoch: number;
        readonly model: string;
      }
    | undefined;
  readonly version: number;
}

interface QuotaNews {
  readonly epoch: number;
  readonly isHeld: boolean;
  readonly pausedUntil: number;
  readonly rate: number | undefined;
  readonly burst: number;
}

interface QuotaReply extends QuotaNews {
  readonly boardNow: number;
  readonly isLeader: boolean;
  readonly present: number;
  readonly rank: number;
  readonly oldestReportAt: number;
  readonly againInMs: number;
  readonly slots: readonly number[];
  readonly mail: string;
  readonly version: number;
  readonly model: string;
}

interface Hearer {
  /** The fleet can be asked again. */
  joined(): void;
  /** The connection has ended. */
  lost(): void;
  news(news: QuotaNews): void;
}

export interface QuotaBoard {
  /** Never rejects. Undefined: the fleet cannot be asked now. */
  exchange(request: QuotaRequest): Promise<QuotaReply | undefined>;
  /** From now on news are told. */
  listen(hearer: Hearer): void;
}

export interface QuotaBoardOptions {
  readonly fleet: Pick<Fleet, 'run'>;
  readonly ear: Pick<Ear, 'listen'>;
  /** The key under which replicas that share this quota meet; undefined while it cannot be told. */
  readonly key: () => Promise<string | undefined>;
  /** Registers who is to hear of the connection. */
  readonly follow: (hearer: Pick<Hearer, 'joined' | 'lost'>) => void;
}

export function createQuotaBoard({ fleet, ear, key, follow }: QuotaBoardOptions): QuotaBoard {
  return {
    async exchange(request) {
      const name = await key();
      const reply = name === undefined ? undefined : await fleet.run(EXCHANGE, name, argumentsOf(request));
      return reply && readReply(reply);
    },
    listen(hearer) {
      follow(hearer);
      void key().then((name) => {
        if (name === undefined) return;
        ear.listen(name, (message) => {
          const news = readNews(message.split(' '));
          if (news !== undefined) hearer.news(news);
        });
      });
    },
  };
}

function argumentsOf(request: QuotaRequest): (string | number)[] {
  const { id, want, activity, fixed, size, calls, refusal, published, version } = request;
  // The script knows no Infinity: 0 is a rate that is not limited.
  const told = published && { ...published, rate: Number.isFinite(published.rate) ? published.rate : 0 };
  return [
    id,
    want,
    activity,
    fixed?.rate ?? '',
    fixed?.burst ?? '',
    size,
    calls,
    refusal?.at ?? '',
    refusal?.statedWaitMs ?? '',
    told === undefined ? '' : JSON.stringify(told),
    version,
  ];
}

/** Undefined for what is none, and for the answer to a farewell. */
export function readReply(reply: Reply): QuotaReply | undefined {
  const texts = reply.map(String);
  const [boardNow, leads, epoch, held, pausedUntil, rate, burst, present, rank, oldest, again] = texts;
  const [slots = '', mail = '', version = '', model = ''] = texts.slice(11);
  const news = readNews([epoch, held, pausedUntil, rate, burst]);
  const now = Number(boardNow);
  if (news === undefined || boardNow === undefined || !Number.isFinite(now)) return undefined;
  return {
    ...news,
    boardNow: now,
    isLeader: leads === '1',
    present: Math.max(1, Number(present) || 1),
    rank: Number(rank) || 0,
    oldestReportAt: Number(oldest) || now,
    againInMs: Number(again) || 0,
    slots: slots === '' ? [] : slots.split(' ').map((ahead) => now + Number(ahead)),
    mail,
    version: Number(version) || 0,
    model,
  };
}

function readNews(texts: readonly (string | undefined)[]): QuotaNews | undefined {
  const [epoch, held, pausedUntil, rate, burst] = texts;
  if (burst === undefined || rate === undefined || !Number.isFinite(Number(rate))) return undefined;
  return {
    epoch: Number(epoch) || 0,
    isHeld: held === '1',
    pausedUntil: Number(pausedUntil) || 0,
    rate: rate === '' ? undefined : Number(rate) > 0 ? Number(rate) : Infinity,
    burst: Math.max(1, Number(burst) || 1),
  };
}
