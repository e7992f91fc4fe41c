/**
 * Lua scripts, which the server runs in one piece and by its own clock: the only commands of a fleet. Each works on one key, so that
 * a cluster's proxy can tell where it belongs, and answers with a list.
 */
import { createHash } from 'node:crypto';
import { RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';

export interface Script {
  readonly source: string;
  /** The server's name for it. */
  readonly sha1: string;
}

export type ScriptArguments = readonly (string | number)[];

/** What a script answered: texts, whole numbers and null. */
export type ScriptReply = readonly unknown[];

/** Prepares a script. */
export function defineScript(source: string): Script {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/**
 * Runs it by its name, and in full where the server does not know it yet.
 * @throws RedisFault
 */
export async function runScript(
  link: RedisConnection,
  { source, sha1 }: Script,
  key: string,
  args: ScriptArguments,
): Promise<ScriptReply> {
  const rest = ['1', key, ...args.map(String)];
  const reply = await link.send(['EVALSHA', sha1, ...rest]).catch((error: unknown) => {
    if (error instanceof RedisFault && error.replyCode === 'NOSCRIPT') return link.send(['EVAL', source, ...rest]);
    throw error;
  });
  if (!Array.isArray(reply)) throw new RedisFault('answered with something else than a list', 'ERR');
  return reply as ScriptReply;
}
