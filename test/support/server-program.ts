/** A server program of the system, such as nginx, on a port of 127.0.0.1. It ends with the process that started it at the latest. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { waitUntilAccepted } from './raw-client.ts';

export interface ServerProgramOptions {
  readonly args: readonly string[];
  /** The port that the arguments make it listen on. */
  readonly port: number;
  /** Prints its stderr. Default: false. */
  readonly printsErrors?: boolean;
}

export interface ServerProgram {
  readonly child: ChildProcess;
  /** Default: SIGKILL. Resolves when the process has ended, at once if it has ended already. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Resolves when the port accepts connections. @throws Error when the program is not installed, ends, or does not accept in time */
export async function startServerProgram(
  program: string,
  { args, port, printsErrors = false }: ServerProgramOptions,
): Promise<ServerProgram> {
  const child = spawn(program, args, {
    // Debian has servers in a folder that is not on the path of users.
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
    stdio: ['ignore', 'ignore', printsErrors ? 'inherit' : 'ignore'],
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(`it ended with ${String(code ?? signal)}`));
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  void ended.then(() => process.off('exit', killAtExit));
  const stop = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  const accepted = waitUntilAccepted(`http://127.0.0.1:${String(port)}`);
  try {
    await Promise.race([accepted, ended.then((reason) => Promise.reject(new Error(reason)))]);
  } catch (error) {
    accepted.catch(() => undefined);
    await stop();
    throw new Error(`${program} did not start; is it installed?`, { cause: error });
  }
  return { child, stop };
}
