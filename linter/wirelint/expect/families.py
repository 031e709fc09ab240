"""What classes and model types of transformers mean for a model's inputs.

Source: transformers 4.57, the ``model_input_names`` and ``padding_side`` of the tokenizer classes, the ``forward`` methods
of the models, and the classes that the feature extractors name.  A class that is not here says nothing.
"""

from __future__ import annotations

__all__ = [
    "EMITS_PIXEL_MASK",
    "READS_IMAGES",
    "VISIBLE_PADDING",
    "default_side",
    "names_of_class",
    "names_of_model_type",
    "segment_rows",
]

_IDS_AND_MASK = """
    Bart Barthez Bartpho BertGeneration BigBird BioGpt Blenderbot BlenderbotSmall Bloom ByT5 CLIP Camembert CodeGen CodeLlama
    Cohere CpmAnt DPRReader DistilBert Esm FSMT GPT2 GPTNeoX GPTNeoXJapanese GPTSw3 Gemma LED Llama Longformer Luke M2M100
    MBart MBart50 MLuke MPNet MT5 Marian MistralCommon Mvp MyT5 Nllb Nougat OpenAIGPT PLBart Pegasus Perceiver ProphetNet
    Qwen2 Reformer Roberta SeamlessM4T Speech2Text T5 Vits Whisper XGLM XLMRoberta
""".split()  # noqa: SIM905 -- sixty names read better as a text
_IDS_SEGMENTS_MASK = """
    Albert Bert BertJapanese Canine ConvBert DPRContextEncoder DPRQuestionEncoder Deberta DebertaV2 Electra Funnel Herbert
    LayoutLM Lxmert MobileBert PreTrained RemBert RoCBert RoFormer Splinter SqueezeBert XLNet
""".split()  # noqa: SIM905 -- sixty names read better as a text
_OF_MODEL_TYPE = {
    "albert": "Albert", "bart": "Bart", "bert": "Bert", "big_bird": "BigBird", "camembert": "Camembert", "clip": "CLIP",
    "convbert": "ConvBert", "deberta": "Deberta", "deberta-v2": "DebertaV2", "distilbert": "DistilBert", "electra": "Electra",
    "fnet": "FNet", "funnel": "Funnel", "gpt2": "GPT2", "gpt_neox": "GPTNeoX", "layoutlm": "LayoutLM", "led": "LED",
    "llama": "Llama", "longformer": "Longformer", "marian": "Marian", "mbart": "MBart", "mobilebert": "MobileBert",
    "mpnet": "MPNet", "mt5": "T5", "nezha": "Bert", "pegasus": "Pegasus", "qwen2": "Qwen2", "rembert": "RemBert",
    "roberta": "Roberta", "roformer": "RoFormer", "squeezebert": "SqueezeBert", "t5": "T5", "whisper": "Whisper",
    "xlm-roberta": "XLMRoberta", "xlnet": "XLNet",
}  # fmt: skip
_LEFT = frozenset({"CodeLlama", "Cohere", "Gemma", "Llama", "MistralCommon", "XLNet"})

VISIBLE_PADDING = frozenset({"siglip", "siglip_text_model", "siglip2", "siglip2_text_model", "whisper"})
"""Model types that are trained with padding that everything hears: SigLIP's text tower is fed a fixed length without a mask,
Whisper a fixed window of silence."""

EMITS_PIXEL_MASK = frozenset({
    "bridgetower", "conditional_detr", "dab-detr", "deformable_detr", "detr", "grounding-dino", "mask2former", "maskformer",
    "oneformer", "table-transformer", "vilt",
})  # fmt: skip
"""Model types whose ``forward`` takes ``pixel_mask`` and whose image processor makes it when it pads."""

READS_IMAGES = frozenset({"blip", "blip-2", "blip_text_model", "instructblip", "trocr", "vision-encoder-decoder"})
"""Model types whose text decoder attends to the patches of an image, a fixed number for each: there is nothing to mask."""

_TWO_SEGMENTS = frozenset({
    "albert", "bert", "convbert", "electra", "layoutlm", "mobilebert", "nezha", "rembert", "roc_bert", "roformer",
    "squeezebert", "visual_bert",
})  # fmt: skip


def _stem(name: str) -> str:
    return name.removesuffix("Fast").removesuffix("Tokenizer")


def names_of_class(tokenizer_class: str) -> tuple[str, ...]:
    """The inputs that a tokenizer class makes unless told otherwise; empty when the class is not known.

    Examples:
        >>> names_of_class("XLMRobertaTokenizerFast")
        ('input_ids', 'attention_mask')
    """
    stem = _stem(tokenizer_class)
    if stem in _IDS_AND_MASK:
        return ("input_ids", "attention_mask")
    if stem in _IDS_SEGMENTS_MASK:
        return ("input_ids", "token_type_ids", "attention_mask")
    return ("input_ids", "token_type_ids") if stem == "FNet" else ()


def names_of_model_type(model_type: str) -> tuple[str, ...]:
    """The inputs that the tokenizer makes which transformers loads for a model type; empty when it is not known."""
    return names_of_class(_OF_MODEL_TYPE.get(model_type, ""))


def default_side(tokenizer_class: str) -> str:
    """``left`` for a class that pads left unless told otherwise, else an empty string."""
    return "left" if _stem(tokenizer_class) in _LEFT else ""


def segment_rows(model_type: str) -> int:
    """Rows of the segment table of a model type whose config does not say."""
    return 2 if model_type in _TWO_SEGMENTS else 0
