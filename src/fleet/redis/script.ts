/**
 * Lua scripts, which the server runs atomically and by its own clock: the only commands of a fleet. Each uses one key, so that
 * a proxy of a cluster can route it, and returns a list.
 */
import { createHash } from 'node:crypto';
import { RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';

export interface Script {
  readonly source: string;
  /** Identifies it to the server. */
  readonly sha1: string;
}

export type ScriptArguments = readonly (string | number)[];

/** Strings, integers and null. */
export type ScriptReply = readonly unknown[];

export function defineScript(source: string): Script {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/**
 * Runs a script by its hash, or sends its source if the server does not know it yet.
 * @throws RedisFault
 */
export async function runScript(
  connection: RedisConnection,
  { source, sha1 }: Script,
  key: string,
  args: ScriptArguments,
): Promise<ScriptReply> {
  const rest = ['1', key, ...args.map(String)];
  const reply = await connection.send(['EVALSHA', sha1, ...rest]).catch((error: unknown) => {
    if (error instanceof RedisFault && error.replyCode === 'NOSCRIPT')
      return connection.send(['EVAL', source, ...rest]);
    throw error;
  });
  if (!Array.isArray(reply)) throw new RedisFault('replied with something else than a list', { replyCode: 'ERR' });
  return reply as ScriptReply;
}
