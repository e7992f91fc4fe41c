/** One line for each step of a rehearsal, and whether one has failed. */

/** Says why a step cannot run on this machine. */
export class CannotRunError extends Error {}

export class Report {
  hasFailed = false;

  /** Goes on after a failure: what else fails is of interest, too. @param attempt returns a text that is worth printing, or anything else */
  async step(name: string, attempt: () => unknown): Promise<void> {
    const begun = performance.now();
    try {
      const detail = await attempt();
      const seconds = ((performance.now() - begun) / 1000).toFixed(0);
      console.log(`ok             ${name} (${seconds} s)${typeof detail === 'string' ? `: ${detail}` : ''}`);
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof CannotRunError) console.log(`could not run  ${name}: ${message}`);
      else {
        this.hasFailed = true;
        console.log(`FAILED         ${name}: ${message}`);
      }
    }
  }
}
