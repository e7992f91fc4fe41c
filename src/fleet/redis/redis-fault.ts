/**
 * Describes errors of Redis for a log: the error code, its meaning, and the command or the setting that it concerns. Never quotes
 * the error's own message, which may hold arguments of a command, a URL with its password, or received bytes.
 */
import { describeFault } from '../../platform/faults.ts';

/** A failed command or connection. `message` follows the word "Redis" and holds no secret. */
export class RedisFault extends Error {
  override readonly name = 'RedisFault';
  /** First word of an error reply, such as `NOAUTH`; undefined without an error reply. */
  readonly replyCode: string | undefined;
  /** The code of a connection's error, such as `ECONNRESET`. */
  readonly code: string | undefined;
  /** The server cannot be used until it or its address changes: it is tried again at long intervals. Default: false. */
  readonly isLasting: boolean;

  constructor(message: string, details: Partial<Pick<RedisFault, 'replyCode' | 'code' | 'isLasting'>> = {}) {
    super(message);
    const { replyCode, code, isLasting = false } = details;
    this.replyCode = replyCode;
    this.code = code;
    this.isLasting = isLasting;
  }
}

const REDIS_SETTINGS = { address: 'fleet.redisUrl (SIDECAR_REDIS_URL)', ca: 'fleet.caFile (SIDECAR_FLEET_CA_FILE)' };

/** Only Redis is reached through a socket file: of other connections these codes mean something else. */
const SOCKET_FILE_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'has no socket at this path',
  EACCES: 'has a socket that this user may not use',
};

const CLUSTER_TEXT =
  'runs in cluster mode, which a fleet does not use: name a single server, or a proxy in front of the cluster, in fleet.redisUrl';
const CLUSTER_CODES: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'CLUSTERDOWN']);

const ERROR_REPLIES: Readonly<Record<string, string>> = {
  NOAUTH: 'asks for a password: put it into fleet.redisUrl',
  WRONGPASS: 'refused the user or the password of fleet.redisUrl',
  DENIED:
    'is in protected mode and accepts connections from its own host only: set a password there and in fleet.redisUrl',
  READONLY: 'is a replica that accepts no writes',
  MASTERDOWN: 'is a replica without its master',
  LOADING: 'is still loading its data',
  BUSY: 'is busy with a long script',
  OOM: 'has no memory left for writes',
  MISCONF: 'accepts no writes because it cannot save',
  WRONGTYPE: 'holds something else under a key of the fleet: set another fleet.keyPrefix',
};

/** Error replies whose code says less than their text, which is matched and never quoted. */
const ERROR_TEXTS: readonly (readonly [pattern: RegExp, meaning: string])[] = [
  [/SELECT is not allowed in cluster mode/i, CLUSTER_TEXT],
  [/max number of clients/i, 'has reached its maximum number of connections (maxclients)'],
  [/DB index/i, 'has no database of the number in fleet.redisUrl'],
  [/AUTH.*without any password|no password is set/i, 'has no password: remove the one in fleet.redisUrl'],
  [/command called from script/i, 'lacks a command that the scripts of the fleet use: it is renamed or disabled there'],
];

/** Without the code NOPERM in Redis 7. */
const FORBIDDEN_IN_SCRIPT = /^\w+ (?:ACL failure in script|The user executing the script can't)/i;

/** The only words of an error reply that are quoted. */
const COMMANDS: ReadonlySet<string> = new Set(
  'AUTH PING SELECT INFO EVAL EVALSHA SUBSCRIBE TIME HGET HMGET HGETALL HSET HDEL PEXPIRE PEXPIREAT PUBLISH'.split(' '),
);

/** For a server in cluster mode: it would execute the commands for a part of the keys only. */
export function createClusterFault(replyCode?: string): RedisFault {
  const suffix = replyCode === undefined ? '' : ` (${replyCode})`;
  return new RedisFault(`${CLUSTER_TEXT}${suffix}`, { replyCode, isLasting: true });
}

/** A RedisFault is returned unchanged. @param command the name of the command that failed, if it is known */
export function toRedisFault(error: unknown, command?: string): RedisFault {
  if (error instanceof RedisFault) return error;
  if (!(error instanceof Error)) return new RedisFault('failed');
  if ('code' in error && typeof error.code === 'string') {
    const { code } = error;
    const socketFile = SOCKET_FILE_TEXTS[code];
    if (socketFile !== undefined) return new RedisFault(`${socketFile} (${code})`, { code });
    const { words, advice } = describeFault(error, REDIS_SETTINGS);
    return new RedisFault(`${words}; ${advice}`, { code });
  }
  switch (error.constructor.name) {
    case 'SimpleError':
    case 'BlobError':
    case 'ErrorReply':
      return createReplyFault(error.message, command);
    case 'ConnectionTimeoutError':
      return new RedisFault('could not be reached in time');
    default:
      return new RedisFault(
        error.message.startsWith('Unknown RESP type') ? 'does not speak the Redis protocol' : 'closed the connection',
      );
  }
}

function createReplyFault(text: string, command: string | undefined): RedisFault {
  const replyCode = /^[A-Z]+/.exec(text)?.[0] ?? 'ERR';
  const meaning = ERROR_TEXTS.find(([pattern]) => pattern.test(text))?.[1];
  if (CLUSTER_CODES.has(replyCode) || meaning === CLUSTER_TEXT) return createClusterFault(replyCode);
  return new RedisFault(`${meaning ?? describeReply(replyCode, text, command)} (${replyCode})`, { replyCode });
}

function describeReply(replyCode: string, text: string, command: string | undefined): string {
  const name = findCommand(text) ?? command;
  if (replyCode === 'NOPERM' || FORBIDDEN_IN_SCRIPT.test(text)) return describeMissingPermission(text, name);
  if (/^ERR unknown command/i.test(text))
    return `does not know the command ${name ?? 'of the fleet'}: it is renamed or disabled there`;
  return ERROR_REPLIES[replyCode] ?? 'replied with an error';
}

function describeMissingPermission(text: string, command: string | undefined): string {
  const subject = 'does not permit its user';
  const isForCommand = /\brun (?:the|this)\b/i.test(text);
  if (!isForCommand && /\bkeys?\b/i.test(text)) return `${subject} the keys of fleet.keyPrefix`;
  if (!isForCommand && /\bchannels?\b/i.test(text)) return `${subject} the channels of fleet.keyPrefix`;
  // The error of a script does not always name the command in it.
  if (FORBIDDEN_IN_SCRIPT.test(text) && findCommand(text) === undefined)
    return `${subject} a command that the scripts of the fleet use`;
  return `${subject} the command ${command ?? 'of the fleet'}`;
}

/** The command that an error reply names as unknown or forbidden. */
function findCommand(text: string): string | undefined {
  const name = /(?:unknown command|run the) ['`]([a-z]+)/i.exec(text)?.[1]?.toUpperCase();
  return name !== undefined && COMMANDS.has(name) ? name : undefined;
}
