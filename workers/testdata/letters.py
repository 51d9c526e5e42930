import verifiers as vf
from datasets import Dataset

class TwoTurns(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **kw):
        return [{"role": "user", "content": "again, please"}]

def load(n=8):
    rows = Dataset.from_list([{"question": f"Say the letter {chr(97+i)}.", "answer": chr(97+i)} for i in range(n)])
    def has_letter(completion, answer, **kw):
        text = completion[-1]["content"] if isinstance(completion, list) else completion
        return 1.0 if answer in text else 0.0
    def length(completion, **kw):
        return float(sum(len(m["content"] or "") for m in completion if m["role"] == "assistant"))
    return TwoTurns(dataset=rows, eval_dataset=rows, max_turns=2, rubric=vf.Rubric(funcs=[has_letter, length], weights=[1.0, 0.0]), message_type="chat")
