/** Makes of a task one that a timer can start: while it is under way, being started again does nothing. */
export function oneAtATime(task: () => Promise<unknown>, failed: (error: unknown) => void): () => void {
  let isUnderWay = false;
  return () => {
    if (isUnderWay) return;
    isUnderWay = true;
    void task()
      .catch(failed)
      .finally(() => {
        isUnderWay = false;
      });
  };
}
