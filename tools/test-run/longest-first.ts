/**
 * The order of the test files. Those that take longest are started first, so that none of them runs alone at the end. Files that share a process
 * come last, one after the other: vitest ends a shared process when another file comes between.
 */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { LONGEST_TESTS } from './longest-tests.ts';

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => this.#rank(one) - this.#rank(other));
  }

  #rank({ project, moduleId }: TestSpecification): number {
    const place = LONGEST_TESTS.indexOf(relative(this.ctx.config.root, moduleId));
    if (place >= 0 && project.config.isolate) return place;
    return LONGEST_TESTS.length + (project.config.isolate ? 0 : 1);
  }
}
