/**
 * Describes errors of Redis for a log: the error code and its meaning. Never quotes the error's own message, which may hold a
 * command, a URL with its password, or received bytes.
 */
import { describeConnectionError } from '../../platform/connection-error-texts.ts';

/** A failed command or connection. `message` follows the word "Redis" and holds no secret. */
export class RedisFault extends Error {
  override readonly name = 'RedisFault';
  /** First word of an error reply, such as `NOAUTH`; undefined without an error reply. */
  readonly replyCode: string | undefined;

  constructor(message: string, replyCode?: string) {
    super(message);
    this.replyCode = replyCode;
  }
}

/** Beside the texts of platform/connection-error-texts.ts. */
const SOCKET_FILE_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'has no socket at this path',
  EACCES: 'has a socket that this user may not use',
};

const ERROR_REPLIES: Readonly<Record<string, string>> = {
  NOAUTH: 'asks for a password: put it into fleet.redisUrl',
  WRONGPASS: 'refused the user or the password of fleet.redisUrl',
  NOPERM: 'does not permit its user what the fleet needs: PING, SELECT, EVAL, EVALSHA and the commands of its scripts',
  READONLY: 'is a replica that accepts no writes',
  MASTERDOWN: 'is a replica without its master',
  LOADING: 'is still loading its data',
  OOM: 'has no memory left for writes',
  MISCONF: 'accepts no writes because it cannot save',
  MOVED: 'is one node of a cluster: a single server or a proxy in front of the cluster is expected',
  WRONGTYPE: 'holds something else under a key of the fleet: set another fleet.keyPrefix',
};

/** Converts an error of the Redis client; a RedisFault is returned unchanged. */
export function toRedisFault(error: unknown): RedisFault {
  if (error instanceof RedisFault) return error;
  if (!(error instanceof Error)) return new RedisFault('failed');
  if ('code' in error && typeof error.code === 'string') {
    const text = describeConnectionError(error.code, 'fleet.caFile') ?? SOCKET_FILE_ERRORS[error.code];
    return new RedisFault(`${text ?? 'cannot be reached'} (${error.code})`);
  }
  switch (error.constructor.name) {
    case 'SimpleError':
    case 'BlobError':
    case 'ErrorReply': {
      const replyCode = /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
      return new RedisFault(`${ERROR_REPLIES[replyCode] ?? 'replied with an error'} (${replyCode})`, replyCode);
    }
    case 'ConnectionTimeoutError':
      return new RedisFault('could not be reached in time');
    default:
      return new RedisFault('closed the connection');
  }
}
